#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-topo and hoop-info on a driver that has devices, with and without NVML: ordinals, peer access, NVLinks, reasons.
set -u
tools=$TEST_BUILD/tools
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
export LC_ALL=C
unset "${!HOOP_@}" "${!HWLOC_@}"
cp "$TEST_BUILD/tests/unit/.libs/topo_driver.so" "$scratch/libcuda.so.1" || exit 1
mkdir "$scratch/nvml" || exit 1
cp "$TEST_BUILD/tests/unit/.libs/topo_nvml.so" "$scratch/nvml/libnvidia-ml.so.1" || exit 1
export LD_LIBRARY_PATH=$scratch
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export HWLOC_SYNTHETIC="pack:1 [numa] core:2 pu:1" HWLOC_THISSYSTEM=1

fail() {
    echo "failed: $*"
    failed=1
}

topo() { "$tools/topo/hoop-topo" "$@" >"$scratch/out" 2>"$scratch/err" || fail "hoop-topo $*: exit $?"; }
info() { "$tools/info/hoop-info" "$@" >"$scratch/out" 2>"$scratch/err" || fail "hoop-info $*: exit $?"; }

# has WHAT PATTERN: a line of the output matches.
has() { grep -Eq -- "$2" "$scratch/out" || { fail "$1: no line matches \"$2\""; cat "$scratch/out"; }; }
lacks() { ! grep -Eq -- "$2" "$scratch/out" || fail "$1: a line matches \"$2\""; }
# row NAME CELLS...: the row of the matrix begins so.
row() { has "row $1" "^$1$(printf '\t%s' "${@:2}")"; }

# hoop-info
info
has driver "^  driver  *CUDA 12.4, found as $scratch/libcuda.so.1\$"
has device '^  cuda:2  *NVIDIA Test 2, 0000:a2:00.0, 3.0 GiB, 102 multiprocessors, capability 9.0$'
has uuid '^  *GPU-33333333-3333-3333-3333-333333333333, reaches the memory of: 0 1 3$'
has limits '^  *its memory cannot be passed as a file descriptor$'
info --json
has json '"cuda": \{"usable": true, "version": "12.4", "origin": ".*/libcuda.so.1", "devices": \['
has device '^    \{"ordinal": 0, "usable": true, "name": "NVIDIA Test 0", .*"memory_bytes": 3221225472, .*"peers": \[1, 2, 3\], "through_host": \[\], "limits": null\}'
FACTS_ISLAND=2 info
has 'no peer access' '^  *kernels exchange with 0 1 through memory of the host \(cuda_host\): no peer access$'
FACTS_ISLAND=2 info --json
has 'no peer access' '"ordinal": 3, .*"peers": \[2\], "through_host": \[0, 1\]'

# A driver that is too old: hoop-info says so, and so does a communicator that is asked for a device, or finds its context current.
mkdir "$scratch/old" || exit 1
cp "$TEST_BUILD/tests/unit/.libs/topo_driver_old.so" "$scratch/old/libcuda.so.1" || exit 1
old='the CUDA driver .*/old/libcuda.so.1 has no cuStreamWaitValue32: it is too old; install one for CUDA 11.7 or later'
LD_LIBRARY_PATH=$scratch/old info
has 'old driver' "^  none  *$old\$"
bench() { env LD_LIBRARY_PATH="$scratch/old" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" "$@" "$tools/bench/hoop-bench" barrier -n 1 >"$scratch/out" 2>&1; }
bench HOOP_DEVICE=cuda:0 && fail 'an old driver is used'
has 'old driver' "HOOP_DEVICE=cuda:0: $old"
bench FACTS_CURRENT=1 LD_PRELOAD="$scratch/old/libcuda.so.1" && fail 'the context of an old driver is taken for none'
has 'old driver' "a CUDA context is current, but hoop cannot use its device: $old; or set HOOP_DEVICE=none"
bench FACTS_CURRENT=1 LD_PRELOAD="$scratch/old/libcuda.so.1" HOOP_DEVICE=none || fail "HOOP_DEVICE=none: $(cat "$scratch/out")"

FACTS_MIG=1 info
has 'part of a GPU' '^  cuda:3  *NVIDIA Test 1 MIG 1g.5gb, 0000:a1:00.0, '
has 'part of a GPU' '^  *MIG-44444444-4444-4444-4444-444444444444'
FACTS_DEVICES=0 info
has 'no device' '^  none  *the CUDA driver .*libcuda.so.1 finds no device; does CUDA_VISIBLE_DEVICES hide them\?$'
FACTS_INIT=100 info
has 'no device' '^  none  *the CUDA driver .*libcuda.so.1 finds no device'
FACTS_INIT=803 info
has 'cuInit fails' '^  none  *the CUDA driver .*libcuda.so.1 does not start: cuInit failed: CUDA_ERROR_OF_THE_TEST \(803: as the test says\)'

# hoop-topo: what the driver alone tells. Nobody told the PCI buses, so the classes are unknown.
FACTS_ISLAND=2 topo
row GPU0 ' X ' '\?' '\?' '\?'
has legend '^  GPU0: CUDA device 0, NVIDIA Test 0; peer access to GPU1$'
has legend '^  GPU3: CUDA device 3, NVIDIA Test 3; peer access to GPU2$'
lacks fabric 'NV[0-9]'
FACTS_DEVICES=1 topo
has 'one GPU' '^  GPU0: CUDA device 0, NVIDIA Test 0; no peer access$'
FACTS_DEVICES=2 FACTS_MIG=1 topo --json
has 'parts of a GPU' '"bus": "0000:a0:00.0".*"names": "cuda0,cuda1".*"cuda_ordinal": \{"value": 0, '
FACTS_FABRIC=1 FACTS_ISLAND=2 topo
row GPU1 'NV\?' ' X ' '\?' '\?'
has 'unknown count' 'NV\?: nobody told how many'
topo --json
has ordinal '"label": "GPU1", .*"source": "CUDA driver", "bus": "0000:a1:00.0".*"names": "cuda1".*"cuda_ordinal": \{"value": 1, "source": "CUDA driver"\}'
has peer '"kind": "peer access", "a": "GPU0", "b": "GPU3", "source": "CUDA driver"'
has origin 'and by the CUDA driver \(12.4\)'

# NVML counts links, and that it tells none means that there is none.
export LD_LIBRARY_PATH=$scratch:$scratch/nvml
FACTS_FABRIC=1 NVML_LINKS="0-1:4 1-2:2" topo
row GPU0 ' X ' NV4 '\?' '\?'
row GPU1 NV4 ' X ' NV2 '\?'
FACTS_FABRIC=1 NVML_LINKS="" topo
lacks 'no fabric' 'NV[0-9?]'
FACTS_FABRIC=1 topo
row GPU0 ' X ' 'NV\?' 'NV\?' 'NV\?'
NVML_LINKS="0-s:6 1-s:6 3-s:2" topo
row GPU0 ' X ' NV6 '\?' NV2
NVML_LINKS="0-s:6 1-s:6" topo --json
has switch '"kind": "fabric switch", .*"source": "NVML", "bus": "0000:e0:00.0"'
has speed '"kind": "NVLink", "a": "GPU1", "b": "Switch0", "source": "NVML", .*"count": \{"value": 6, "source": "NVML"\}, "gigabytes_per_second": \{"value": 150, "source": "NVML"\}'

# What the driver says of peer access, and why not; written and read again it is the same.
export NVML_LINKS="" NVML_P2P="0-1:00550 0-2:22552 1-2:44554"
topo -p2p r
has reads '^ GPU0	X	OK	GNS	OK	$'
has reads '^ GPU1	OK	X	DR	OK	$'
topo -p2p n
has nvlink '^ GPU0	X	NS	NS	NS	$'
topo -p2p p
has pci '^ GPU2	GNS	DR	X	OK	$'
topo --json
has json '"from": "GPU2", "to": "GPU1", "read": "DR", "write": "DR", "nvlink": "NS", "atomics": "NS", "pci": "DR"\}'
topo --export hoop
has 'own form' '<access a="[0-9]+" b="[0-9]+" read="GNS" write="GNS" nvlink="NS" atomics="NS" pci="GNS"/>'
mv "$scratch/out" "$scratch/machine"
topo --input "$scratch/machine" -p2p w
has again '^ GPU0	X	OK	GNS	'
"$tools/topo/hoop-topo" --doctor --input "$scratch/machine" >"$scratch/out" 2>&1 && fail 'the doctor finds nothing wrong'
has doctor "^note   GPU0 and GPU2 do not reach each other's memory: GPUs of this kind do not do it \(GNS\)"
has doctor "^wrong  GPU1 and GPU2 do not reach each other's memory: a registry key of the driver forbids it \(DR\)"
exit $failed
