#!/bin/sh
# The npm package, with an addon that is built already, and the sources for other machines; see common.sh.
. "$(dirname "$0")/common.sh"
node=$(command -v node) || {
	echo "no node here"
	echo "0 passed, 1 failed"
	exit 1
}
headers=${NODE_INCLUDE:-$(dirname "$(dirname "$(readlink -f "$node")")")/include/node}
here=$root/lib/node
stage=$tmp/stage/package
tarball=$out/pullet-node-$version.tgz
make() {
	arch=$(node -p 'process.platform + "-" + process.arch')
	mkdir -p "$stage/libpullet" "$stage/prebuilds/$arch" || return 1
	for name in addon.c decode.js example.js index.d.ts index.js testing.d.ts testing.js README.md; do
		cp "$here/$name" "$stage" || return 1
	done
	cp "$root/LICENSE" "$stage"
	for name in $library; do
		cp "$root/lib/$name.c" "$stage/libpullet" || return 1
	done
	cp "$root"/lib/explain.h "$root"/lib/page.h "$root"/lib/path_watch.h "$root"/lib/pullet.h "$root"/lib/snapshot.h /usr/include/xxhash.h "$stage/libpullet" || return 1
	(cd "$stage" && ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -fvisibility=hidden -I"$headers" -Ilibpullet -s \
		-o "prebuilds/$arch/pullet.node" addon.c libpullet/*.c) || return 1
	sources=$(printf '"libpullet/%s.c", ' $library)
	cat >"$stage/binding.gyp" <<END
{ "targets": [ { "target_name": "pullet", "sources": [ ${sources}"addon.c" ], "include_dirs": [ "libpullet" ], "defines": [ "_GNU_SOURCE" ],
  "cflags": [ "-std=c11", "-fvisibility=hidden" ] } ] }
END
	node -e '
		const p = require(process.argv[1] + "/package.json");
		p.files = ["*.js", "*.d.ts", "addon.c", "binding.gyp", "libpullet", "prebuilds", "README.md", "LICENSE"];
		p.gypfile = false;
		p.scripts = { install: "node -e \"require(\u0027./index.js\u0027)\" || node-gyp rebuild" };
		require("fs").writeFileSync(process.argv[2] + "/package.json", JSON.stringify(p, null, 2) + "\n");
	' "$here" "$stage" || return 1
	tar -C "$tmp/stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - package | gzip -n >"$tarball"
}
use() {
	mkdir "$tmp/app" && cd "$tmp/app" && echo '{"private": true}' >package.json &&
		alone npm install --silent --no-audit --no-fund --no-update-notifier --cache "$tmp/npm" "$tarball" &&
		env -u PULLET_NODE_ADDON -u LD_LIBRARY_PATH node -e '
			const { Config } = require("pullet");
			const { Fake } = require("pullet/testing");
			const config = Config.open(process.argv[1]), fake = new Fake({ a: "1s" });
			require("assert").deepStrictEqual([config.get("db.port"), fake.getDuration("a")], [5432, 1000]);
			fake.close();
		' "$tmp/web.snap"
}
try "make the tarball" make
try "the tarball, in an empty project without a network" use
end
