# The files of `make install` are enough to build a program: with pkg-config and CMake, shared and static.
. "$ONX_SOURCE_DIR/tests/lib.sh"
build=$(dirname "$ONX")
[ -f "$build/libonx.so" ] || skip "a build with sanitizers has no shared library"
command -v pkg-config >/dev/null || skip "no pkg-config"
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")

cmake --install "$build" --prefix "$here/usr" >log 2>&1 || { cat log; fail "cmake --install"; }
prefix=$here/usr
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name onx.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir onx)

cat >user.c <<'END'
#include <onx/onx.h>
#include <stdio.h>
int main(void)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    if (!cx || onx_model_new(cx, "g", 17, &doc) != ONX_OK)
        return 1;
    printf("%.*s\n", ONX_ARG(onx_view(onx_doc_model(doc)->graph->name)));
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}
END
# shellcheck disable=SC2046
expect 0 "$cc" user.c -o shared $(pkg-config --cflags --libs onx)
expect 0 env LD_LIBRARY_PATH="$libdir" ./shared
says out g
# shellcheck disable=SC2046
expect 0 "$cc" user.c -o static $(pkg-config --cflags onx) "$libdir/libonx.a" $(pkg-config --libs --static onx | sed 's/-lonx//')
expect 0 ./static
says out g

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(onx 0.1 REQUIRED)
foreach(kind onx onx_static)
  add_executable(user_${kind} user.c)
  target_link_libraries(user_${kind} onx::${kind})
endforeach()
END
expect 0 cmake -S . -B b -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc"
expect 0 cmake --build b
expect 0 ./b/user_onx
expect 0 ./b/user_onx_static

# As a subfolder of another project, under the same names.
mkdir sub
cp user.c sub
cat >sub/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(user C)
add_subdirectory("$ONX_SOURCE_DIR" onx EXCLUDE_FROM_ALL)
add_executable(user user.c)
target_link_libraries(user onx::onx)
add_executable(user_static user.c)
target_link_libraries(user_static onx::onx_static)
if(TARGET test_calls)
  message(FATAL_ERROR "the tests of onx are part of a project that uses it")
endif()
END
expect 0 cmake -S sub -B subbuild -DCMAKE_C_COMPILER="$cc"

expect 0 "$prefix/bin/onx" --version
[ -f "$prefix/share/man/man1/onx.1" ] || fail "no man page"
for file in bash-completion/completions/onx zsh/site-functions/_onx fish/vendor_completions.d/onx.fish; do
    [ -f "$prefix/share/$file" ] || fail "no completion in $file"
done
# Every page that the README links to is there.
doc=$(dirname "$(find "$prefix/share/doc" -name README.md -path '*doc/onx/README.md')")
leads "$doc/README.md"
[ -f "$prefix/share/man/man3/onx_session_run.3" ] || fail "no man page of the library"
# Each page is one, or leads to one.
for page in "$prefix"/share/man/man3/*.3; do
    told=$(sed -n '1s,^\.so ,,p' "$page")
    head -n 1 "$prefix/share/man/${told:-man3/$(basename "$page")}" | grep -q '^\.TH' || fail "no man page: $page"
done
[ -f "$prefix/share/onx/onx.json" ] || fail "no onx.json"
for header in "$ONX_SOURCE_DIR"/include/onx/*; do
    same "$header" "$prefix/include/onx/$(basename "$header")"
done
done_testing
