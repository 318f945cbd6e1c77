#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The kernels compile for 64-bit ARM without warnings, by a cross compiler or by clang, and there the NEON ones are chosen.
set -u

source=$TEST_SOURCE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c11 -O0 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wconversion -Werror "-I$source/include" "-I$source/lib")
compilers=()
if command -v aarch64-linux-gnu-gcc >/dev/null && echo '#include <string.h>' | aarch64-linux-gnu-gcc -c -x c -o /dev/null - 2>/dev/null; then
    compilers+=("aarch64-linux-gnu-gcc")
fi
if command -v clang >/dev/null; then
    # clang brings arm_neon.h; the C library's headers are those of the cross compiler, or else this machine's own
    for headers in /usr/aarch64-linux-gnu/include "/usr/include/$(uname -m)-linux-gnu"; do
        clang="clang --target=aarch64-linux-gnu -isystem $headers"
        if printf '#include <string.h>\n#include <arm_neon.h>\n' | $clang -c -x c -o /dev/null - 2>/dev/null; then
            compilers+=("$clang")
            break
        fi
    done
fi
if [ ${#compilers[@]} -eq 0 ]; then
    echo "skipped: neither aarch64-linux-gnu-gcc nor a clang with --target=aarch64-linux-gnu works here"
    exit 77
fi
failures=0
for compiler in "${compilers[@]}"; do
    for file in kernels_neon kernels_plain kernels_avx2 dtype; do
        # shellcheck disable=SC2086 # a command with its arguments
        $compiler "${flags[@]}" -c "$source/lib/dtype/$file.c" -o "$work/$file.o" || {
            echo "FAIL: $compiler: $file.c"
            failures=$((failures + 1))
        }
    done
    grep -q hoop_kernels_neon "$work/dtype.o" || {
        echo "FAIL: $compiler: dtype.c does not know the NEON kernels"
        failures=$((failures + 1))
    }
done
echo "${#compilers[@]} compilers, $failures failures"
exit $((failures > 0))
