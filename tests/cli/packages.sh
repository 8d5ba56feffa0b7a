# Debian packages hold what they should, and work once they are unpacked; the static program needs no library.
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
done
leads alone/onx/usr/share/doc/onx/README.md
# Debian's zsh looks there, and not into site-functions.
[ -f alone/onx/usr/share/zsh/vendor-completions/_onx ] || fail "no completion where Debian's zsh looks"
says libonx-dev.info "libonx0 (= "
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
prefix=$(sed -n 's/^prefix=//p' "$(find root -name onx.pc)")
[ "$prefix" = /usr ] || fail "onx.pc says prefix $prefix"
done_testing
