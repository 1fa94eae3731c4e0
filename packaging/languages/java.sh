#!/bin/sh
# The Maven repository with the jar, and Maven, which finds it there as lib/java/README.md says; what Maven itself is made of comes from
# Debian's repository. (lib/java/test.sh tries the jar without Maven.) See common.sh.
. "$(dirname "$0")/common.sh"
make() {
	"$root/lib/java/package.sh" "$out/java" "$version"
}
use_maven() {
	mkdir -p "$tmp/app/src/main/java/app" "$tmp/app/third_party" && cd "$tmp/app" && cp -R "$out/java" third_party/ || return 1
	cat >src/main/java/app/Main.java <<'END'
package app;

import pullet.Config;

public final class Main {
    public static void main(String[] args) throws Exception {
        try (Config config = Config.open(args[0])) {
            System.out.println(config.getInt("db.port", 0));
        }
    }
}
END
	{
		echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
		echo '<groupId>app</groupId><artifactId>app</artifactId><version>1</version>'
		echo '<properties><maven.compiler.release>17</maven.compiler.release></properties>'
		sed -n '/^```xml/,/^```/{/^```/d;p}' "$root/lib/java/README.md" | sed "s|<version>[^<]*<|<version>$version<|"
		echo '</project>'
	} >pom.xml
	cat >settings.xml <<END
<settings>
  <localRepository>$tmp/local</localRepository>
  <mirrors><mirror><id>debian</id><mirrorOf>central</mirrorOf><url>file:///usr/share/maven-repo</url></mirror></mirrors>
</settings>
END
	alone mvn -B -s settings.xml compile >said 2>&1 || {
		tail -n 40 said
		return 1
	}
	grep "^.WARNING.*$tmp/app" said && return 1
	[ "$(java -XX:-UsePerfData -cp "$tmp/local/pullet/pullet/$version/pullet-$version.jar:target/classes" app.Main "$tmp/web.snap")" = 5432 ]
}
try "make the jar" make
if [ -d /usr/share/maven-repo/org/apache/maven/plugins/maven-compiler-plugin ] && command -v mvn >/dev/null; then
	try "the jar, by Maven, without a network" use_maven
else
	skip "the jar, by Maven" "packaging/deps.sh --all installs Maven and its compiler plugin"
fi
end
