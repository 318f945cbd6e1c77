#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a stranger gets from `make install`: headers that stand alone, a library that exports what they declare and nothing else,
# and a program that builds with pkg-config only, as C and as C++, shared and static, and runs alone and under hooprun.
# Run by make check (TEST_BUILD, CC and MAKE are set); by hand: TEST_BUILD=build tests/install/run.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${TEST_BUILD:-.}" && pwd) || exit 1
cxx=${CXX:-c++} make=${MAKE:-make}
read -ra cc <<<"${CC:-cc}" # it may be "ccache gcc"
unset MAKEFLAGS MAKELEVEL DESTDIR "${!HOOP_@}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

fail()
{
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}
skip()
{
    printf 'SKIP: %s\n' "$*"
    exit 77
}

# expect WHAT COMMAND...: the command must succeed; its output is shown if it does not.
expect()
{
    local what=$1
    shift
    if "$@" >"$work/output" 2>&1; then
        printf 'ok: %s\n' "$what"
    else
        fail "$what: $*"
        tail -n 20 "$work/output"
    fi
}

install_tree()
{
    local prefix
    tree=$work/tree
    "$make" -s -C "$build" install DESTDIR="$tree" >"$work/output" 2>&1 || { cat "$work/output"; fail "make install"; exit 1; }
    include=$(dirname "$(find "$tree" -name hoop.h)")
    package=$(find "$tree" -name hoop.pc)
    library=$(dirname "$(find "$tree" -name 'libhoop.a' -o -name 'libhoop.so' | head -n 1)")
    programs=$(find "$tree" -type d -name bin)
    manual=$(find "$tree" -type d -name man1)
    prefix=$(sed -n 's/^prefix=//p' "$package")
    # The tree lies under DESTDIR, not where it was configured for: its hoop.pc is moved along.
    mkdir -p "$work/shared" "$work/static"
    sed "s|^prefix=.*|prefix=$tree$prefix|; s|^libdir=/|libdir=$tree/|; s|^includedir=/|includedir=$tree/|" "$package" >"$work/shared/hoop.pc"
    sed "s|^libdir=.*|libdir=$work/static|" "$work/shared/hoop.pc" >"$work/static/hoop.pc"
    cp "$library/libhoop.a" "$work/static/" 2>/dev/null
    export LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

headers_stand_alone()
{
    local header
    for header in hoop.h hoop/device.h hoop/flight.h hoop/launcher.h hoop/operators.h hoop/plan.h hoop/shrink.h hoop/transport.h hoop/topo.h; do
        [ -f "$include/$header" ] || { fail "$header is not installed"; continue; }
        printf '#include <%s>\nint main(void) { return 0; }\n' "$header" | tee "$work/alone.c" >"$work/alone.cc"
        expect "$header alone as C11" "${cc[@]}" -std=c11 -pedantic -Wall -Wextra -Werror -I"$include" -fsyntax-only "$work/alone.c"
        [ "$have_cxx" = no ] || expect "$header alone as C++" "$cxx" -std=c++11 -Wall -Wextra -Werror -I"$include" -fsyntax-only "$work/alone.cc"
    done
    [ "$have_cxx" = no ] || expect "hoop.h as pedantic C++" "$cxx" -std=c++11 -pedantic -Wall -Wextra -Werror -I"$include" \
        -fsyntax-only -include hoop.h "$work/alone.cc"
}

# Exported names of libhoop.so = names after HOOP_API in the headers.
exports_match_headers()
{
    nm -D --defined-only "$library/libhoop.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/exported"
    cat "$include/hoop.h" "$include"/hoop/*.h | grep -v '^#' | tr '\n' ' ' | grep -oE 'HOOP_API [^;(]*\(' | grep -oE '[a-z0-9_]+ *\($' | tr -d ' (' |
        sort -u >"$work/declared"
    expect "exported symbols are those of the headers ($(wc -l <"$work/declared"))" diff "$work/declared" "$work/exported"
}

# consumer KIND LANGUAGE: build with pkg-config's flags only, run alone and with three ranks.
consumer()
{
    local kind=$1 language=$2 flags program=$work/consumer-$1-$2 option=() compile=("${cc[@]}" -std=c11)
    [ "$kind" = shared ] || option=(--static)
    [ "$language" = c ] || compile=("$cxx" -std=c++11 -x c++)
    flags=$(PKG_CONFIG_PATH=$work/$kind pkg-config "${option[@]}" --cflags --libs hoop) || { fail "pkg-config hoop"; return; }
    # shellcheck disable=SC2086 # the flags are words
    expect "$kind $language consumer builds" "${compile[@]}" -pedantic -Wall -Wextra -Werror "$here/consumer.c" -x none -o "$program" $flags
    [ -x "$program" ] || return
    runs_with 1 "$program"
    [ ! -x "$programs/hooprun" ] || runs_with 3 "$programs/hooprun" -n 3 "$program"
}

runs_with()
{
    local ranks=$1 version rank
    shift
    version=$(pkg-config --modversion "$work/shared/hoop.pc" | awk -F. '{ print $1 * 10000 + $2 * 100 + $3 }')
    expect "${*##*/}" timeout 60 "$@"
    for ((rank = 0; rank < ranks; rank++)); do
        grep -q "rank $rank of $ranks: $((ranks * (ranks + 1) / 2)), library $version\$" "$work/output" ||
            { fail "no line of rank $rank of $ranks, sum and version $version"; cat "$work/output"; }
    done
}

# The program that the README shows is the first that a reader tries.
readme_program_works()
{
    local flags
    # shellcheck disable=SC2016 # back quotes are Markdown here
    sed -n '/^```c$/,/^```$/p' "$here/../../README.md" | grep -v '^```' >"$work/readme.c"
    flags=$(PKG_CONFIG_PATH=$work/shared pkg-config --cflags --libs hoop)
    # shellcheck disable=SC2086 # the flags are words
    expect "the README's program builds" "${cc[@]}" -Wall -Wextra -Werror "$work/readme.c" -o "$work/readme" $flags
    expect "the README's program on 3 ranks" timeout 60 "$programs/hooprun" -n 3 "$work/readme"
    grep -q 'rank 2: sum of ranks 3, number of ranks 3' "$work/output" || fail "the README's program does not print the sums"
}

version_is_one()
{
    local header
    header=$(awk '/#define HOOP_VERSION_(MAJOR|MINOR|PATCH)/ { printf "%s%s", dot, $3; dot = "." }' "$include/hoop.h")
    expect "hoop.h and hoop.pc tell one version" test "$header" = "$(pkg-config --modversion "$work/shared/hoop.pc")"
}

programs_explain_themselves()
{
    local program name
    for program in "$programs"/*; do
        name=${program##*/}
        expect "$name --help" timeout 20 "$program" --help
        grep -q "$name" "$work/output" || fail "$name --help does not name the program"
        expect "man page of $name" test -s "$manual/$name.1"
    done
}

uninstall_leaves_nothing()
{
    expect "make uninstall" "$make" -s -C "$build" uninstall DESTDIR="$tree"
    expect "uninstall leaves nothing" test -z "$(find "$tree" ! -type d)"
}

case $(sed -n "s/^SANITIZE_CFLAGS = *//p" "$build/Makefile") in
?*) skip "the library of a sanitized build is not for consumers" ;;
esac
command -v pkg-config >/dev/null || skip "no pkg-config"
have_cxx=yes
command -v "$cxx" >/dev/null || { have_cxx=no; echo "no C++ compiler ($cxx): C++ is left out"; }
install_tree
headers_stand_alone
version_is_one
for kind in shared static; do
    if [ "$kind" = shared ]; then
        [ -e "$library/libhoop.so" ] || continue
        exports_match_headers
        [ -z "$programs" ] || readme_program_works
    else
        [ -e "$library/libhoop.a" ] || continue
    fi
    consumer "$kind" c
    [ "$have_cxx" = no ] || consumer "$kind" c++
done
[ -z "$programs" ] || programs_explain_themselves
uninstall_leaves_nothing
printf '%d failures\n' "$failures"
[ "$failures" -eq 0 ]
