# Debian packages contain the right files and work after unpacking; the static program needs no library.
. "$ONX_SOURCE_DIR/tests/lib.sh"
build=$(dirname "$ONX")
model=$ONX_SOURCE_DIR/examples/stripes.onnxtxt
[ -f "$build/libonx.so" ] || skip "a build with sanitizers has no shared library"
if [ -x "$build/onx-static" ]; then
    ldd "$build/onx-static" >out 2>&1
    grep -q "not a dynamic executable" out || fail "onx-static needs: $(cat out)"
    expect 0 "$build/onx-static" check --full "$model"
    expect 0 "$build/onx-static" run "$model" --random --seed 3 --dim N=2 --dim H=8 --dim W=8
    cp out static.out
    expect 0 env ONX_KERNELS=plain "$ONX" run "$model" --random --seed 3 --dim N=2 --dim H=8 --dim W=8
    awk '{ print $1, $2 }' out >a
    awk '{ print $1, $2 }' static.out >b
    same a b
    # What would have to be loaded is refused with a reason.
    expect 2 "$build/onx-static" check --library "$build/examples/moving_average.so" "$model"
    says err "linked statically"
fi
command -v cpack >/dev/null && command -v dpkg-deb >/dev/null || skip "no cpack or no dpkg-deb"
expect 0 cpack --config "$build/CPackConfig.cmake" -B "$here/packages"
for package in onx libonx0 libonx-dev; do
    deb=$(find packages -maxdepth 1 -name "${package}_*.deb")
    [ -f "$deb" ] || { fail "no package $package: $(ls packages)"; continue; }
    dpkg-deb -x "$deb" root
    # By itself, each has a note on its license, and a README that leads to what is there.
    mkdir -p "alone/$package"
    dpkg-deb -x "$deb" "alone/$package"
    says "alone/$package/usr/share/doc/$package/copyright" "Apache-2.0"
    dpkg-deb -I "$deb" >"$package.info"
    says "$package.info" "Maintainer: onx developers"
    grep -qE 'Maintainer:.*(localhost|<[^.]*>)' "$package.info" && fail "nobody can write to the maintainer of $package"
    grep -qE 'postinst|postrm' "$package.info" && fail "$package has a script where a trigger does it"
    # What changed, as Debian wants it and as it was written.
    doc=alone/$package/usr/share/doc/$package
    gzip -dc "$doc/changelog.gz" >changelog && same changelog "$ONX_SOURCE_DIR/CHANGELOG.md"
    gzip -dc "$doc/changelog.Debian.gz" >changelog
    head -n 1 changelog | grep -qE '^onx \([0-9]+\.[0-9]+\.[0-9]+-[0-9]+\) [a-z]+; urgency=' || fail "the changelog of $package begins with $(head -n 1 changelog)"
    [ "$(grep -c '^  \* ' changelog)" -eq "$(grep -c '^- ' "$ONX_SOURCE_DIR/CHANGELOG.md")" ] || fail "changes are missing in $package"
    tail -n 1 changelog | grep -qE '^ -- .* <.*@.*>  [A-Z][a-z]{2}, ' || fail "the changelog of $package ends with $(tail -n 1 changelog)"
    awk 'length($0) > 80 { exit 1 }' changelog || fail "the changelog of $package has lines of more than 80 columns"
done
leads alone/onx/usr/share/doc/onx/README.md
# Debian's zsh looks there, and not into site-functions.
[ -f alone/onx/usr/share/zsh/vendor-completions/_onx ] || fail "no completion where Debian's zsh looks"
grep -qF "libonx0 (= $(sed -n 's/^ Version: //p' libonx0.info))" libonx-dev.info || fail "libonx-dev needs another libonx0"
says libonx0.info shlibs
says libonx0.info triggers
says libonx0.info "libc6 (>= "
says onx.info "Recommends: libdnnl2"
[ -x root/usr/bin/onx ] || fail "no program"
expect 0 root/usr/bin/onx check "$model"
libdir=$(dirname "$(find root -name 'libonx.so.0')")
for file in "$libdir/libonx.a" "$libdir/libonx.so" root/usr/include/onx/onx.h root/usr/share/man/man1/onx.1 \
    root/usr/share/man/man3/onx_session_run.3 root/usr/share/onx/onx.json; do
    [ -e "$file" ] || [ -e "$file.gz" ] || fail "no $file"
done
expect 0 cc -I root/usr/include "$ONX_SOURCE_DIR/examples/run.c" -o run -L "$libdir" -lonx
expect 0 env LD_LIBRARY_PATH="$libdir" ./run "$model"
# Where several machines have their libraries, pkg-config and CMake find it as well.
triplet=$(cc -print-multiarch 2>/dev/null)
[ -z "$triplet" ] || [ -f "root/usr/lib/$triplet/libonx.so.0" ] || fail "the library is not in lib/$triplet"
pc=$(find root -name onx.pc)
[ -d "root$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable=libdir onx)" ] || fail "onx.pc leads to no folder of libraries"
mkdir user
cp "$ONX_SOURCE_DIR/examples/run.c" user
cat >user/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(onx 0.1 REQUIRED)
foreach(kind onx onx_static)
  add_executable(user_${kind} run.c)
  target_link_libraries(user_${kind} onx::${kind})
endforeach()
END
expect 0 cmake -S user -B user/b -DCMAKE_PREFIX_PATH="$here/root/usr"
expect 0 cmake --build user/b
expect 0 user/b/user_onx "$model"
expect 0 user/b/user_onx_static "$model"
if command -v lintian >/dev/null; then
    lintian --allow-root packages/*.deb >found 2>&1
    grep -E '^[EW]: ' found >bad && fail "lintian finds: $(cat bad)"
else
    echo "lintian is not there (scripts/deps.sh packages): the packages were not looked at by it"
fi
prefix=$(sed -n 's/^prefix=//p' "$(find root -name onx.pc)")
[ "$prefix" = /usr ] || fail "onx.pc says prefix $prefix"
done_testing
