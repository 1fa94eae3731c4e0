#!/bin/sh
# What CMake and pkg-config find of the libraries for C and C++, installed under an empty prefix that is moved then; see common.sh.
. "$(dirname "$0")/common.sh"
mkdir "$tmp/app"
cat >"$tmp/app/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(app C CXX)
find_package(pullet 0.1 REQUIRED CONFIG)
foreach(how pullet static)
  add_executable(c_${how} app.c)
  target_link_libraries(c_${how} pullet::${how})
endforeach()
add_executable(cxx app.cpp)
set_property(TARGET cxx PROPERTY CXX_STANDARD 17)
target_link_libraries(cxx pullet::pullet)
END
cat >"$tmp/app/app.c" <<'END'
#include <pullet.h>

int main(int argc, char **argv)
{
	struct pullet *p;

	return argc != 2 || pullet_open(argv[1], 0, &p) || pullet_get_int(p, "db.port", 0) != 5432;
}
END
cat >"$tmp/app/app.cpp" <<'END'
#include <pullet.hpp>

int main(int, char **argv)
{
	return pullet::config(argv[1]).get("db.port", 0) != 5432;
}
END
make() {
	rm -f "$out"/libpullet-*.tar.gz
	mkdir -p "$tmp/prefix/lib/cmake/pullet" "$tmp/prefix/lib/pkgconfig" "$tmp/prefix/include" &&
		cp "$build/libpullet.so.0" "$build/libpullet.a" "$tmp/prefix/lib" && ln -s libpullet.so.0 "$tmp/prefix/lib/libpullet.so" &&
		sed "s|@INCLUDEDIR@|../../../include|; s|@VERSION@|$version|" "$root/lib/cmake/pulletConfig.cmake.in" >"$tmp/prefix/lib/cmake/pullet/pulletConfig.cmake" &&
		sed "s|@VERSION@|$version|" "$root/lib/cmake/pulletConfigVersion.cmake.in" >"$tmp/prefix/lib/cmake/pullet/pulletConfigVersion.cmake" &&
		sed "s|@LIBDIR@|\${pcfiledir}/..|; s|@INCLUDEDIR@|\${pcfiledir}/../../include|; s|@VERSION@|$version|" "$root/lib/libpullet.pc.in" >"$tmp/prefix/lib/pkgconfig/libpullet.pc" &&
		cp "$root/lib/pullet.h" "$root/lib/cpp/pullet.hpp" "$tmp/prefix/include" &&
		tar -C "$tmp/prefix" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - . | gzip -n >"$out/libpullet-$version.tar.gz"
}
use_cmake() {
	mkdir "$tmp/moved" && tar -C "$tmp/moved" -xzf "$out/libpullet-$version.tar.gz" &&
		env -u CC -u CXX cmake -S "$tmp/app" -B "$tmp/app/build" -DCMAKE_PREFIX_PATH="$tmp/moved" && cmake --build "$tmp/app/build" || return 1
	for program in c_pullet c_static cxx; do
		"$tmp/app/build/$program" "$tmp/web.snap" || return 1
	done
}
use_pkg_config() {
	export PKG_CONFIG_PATH="$tmp/moved/lib/pkgconfig"
	# shellcheck disable=SC2046 # flags
	${CC:-gcc} -o "$tmp/app/pkg" "$tmp/app/app.c" $(pkg-config --cflags --libs libpullet) -Wl,-rpath,"$tmp/moved/lib" && "$tmp/app/pkg" "$tmp/web.snap"
}
try "make a prefix" make
try "find_package() in a prefix that was moved" use_cmake
try "pkg-config in a prefix that was moved" use_pkg_config
end
