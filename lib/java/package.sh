#!/bin/sh
# Makes the Java library as a Maven repository, VERSION (0.0.0) in DIR (build/packages/languages/java):
# DIR/pullet/pullet/VERSION/pullet-VERSION.jar with module-info, -sources.jar, -javadoc.jar and .pom, and
# the checksums that Maven looks for.
#
#   lib/java/package.sh [DIR] [VERSION]
set -eu
cd "$(dirname "$0")"
to=${1:-../../build/packages/languages/java} version=${2:-0.0.0}
mkdir -p "$to/pullet/pullet"
to=$(cd "$to" && pwd)
tmp=$(mktemp -d "$to/.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$tmp/out"
name=$tmp/out/pullet-$version
# the same bytes every time
date=$(date -u -d @"${SOURCE_DATE_EPOCH:-315619200}" +%Y-%m-%dT%H:%M:%SZ)
archive() { # JAR DIR
	mkdir -p "$2/META-INF"
	cp ../../LICENSE "$2/META-INF/"
	printf 'Implementation-Title: pullet\nImplementation-Version: %s\n' "$version" >"$tmp/manifest"
	(cd "$2" && find . -type f | sort) >"$tmp/files"
	(cd "$2" && jar -J-XX:-UsePerfData --create --file "$1" --date "$date" --manifest "$tmp/manifest" @"$tmp/files")
}
javac -J-XX:-UsePerfData --release 17 -encoding UTF-8 -Xlint:all -Werror -d "$tmp/classes" src/module-info.java src/pullet/*.java
archive "$name.jar" "$tmp/classes"
mkdir "$tmp/sources"
cp -R src/. "$tmp/sources/"
archive "$name-sources.jar" "$tmp/sources"
javadoc -J-XX:-UsePerfData -quiet -notimestamp -Xdoclint:all -Werror --release 17 -encoding UTF-8 -d "$tmp/javadoc" \
	--source-path src -subpackages pullet src/module-info.java
archive "$name-javadoc.jar" "$tmp/javadoc"
sed "s/@VERSION@/$version/" pom.xml.in >"$name.pom"
for file in "$name"*; do
	sha1sum <"$file" | cut -d ' ' -f 1 >"$file.sha1"
done
rm -rf "$to/pullet/pullet/$version"
mv "$tmp/out" "$to/pullet/pullet/$version"
echo "$to/pullet/pullet/$version/pullet-$version.jar"
