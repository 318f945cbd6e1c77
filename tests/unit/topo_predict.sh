#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The planner's prediction for an all_reduce of 1 GiB on machines of which nccl-tests figures are published, from their topology
# alone. The machines are described in topo/*.xml; where a collection of recorded ones is at hand ($HOOP_TOPOLOGIES, or
# shared/topologies beside the source folder), a recorded one of the same kind, too. Prints a table; within 25 % is right.
set -u
tool=${PLAN_TOOL:-$TEST_BUILD/tools/plan/hoop-plan}
here=$TEST_SOURCE/tests/unit/topo
recorded=${HOOP_TOPOLOGIES:-$TEST_SOURCE/../shared/topologies}
failed=0
export LC_ALL=C
unset HOOP_ALGO HOOP_MODEL HOOP_GROUPS

# predict NAME PUBLISHED FILE ARGUMENTS: bus bandwidths in GB/s.
predict() {
    name=$1 published=$2 file=$3
    shift 3
    bus=$("$tool" explain all_reduce -s 1G --topo "$file" --json "$@" | sed -n 's/.*"bus_bandwidth":\([0-9.]*\).*/\1/p')
    awk -v name="$name" -v p="$published" -v b="${bus:-0}" 'BEGIN {
        printf "%-44s published %6.1f   predicted %6.1f   %+6.1f %%\n", name, p, b, (b / p - 1) * 100
        exit !(b > 0.75 * p && b < 1.25 * p) }' || failed=1
}

predict "8 A100, NVSwitch" 232 "$here/a100x8.xml"
predict "8 H100, NVSwitch, ring" 370 "$here/h100x8.xml"
predict "2 hosts of 8 A100, 4 ports of 200 Gbit/s" 86 "$here/a100x8.xml" -n 16
predict "8 RTX 5090 on PCIe 5, 2 Xeon 8480+" 28 "$here/rtx5090x8.xml"
h100=$recorded/nccl/oci-bm.gpu.h100.8.xml
[ ! -e "$h100" ] || predict "8 H100 as recorded, ring" 370 "$h100"
[ $failed -eq 0 ] || echo "failed: a prediction is farther than 25 % from what was published, or there is none"

# Ranks that are no whole hosts, and hosts without a way to each other.
if "$tool" explain all_reduce -s 1G --topo "$here/a100x8.xml" -n 12 2>/dev/null || "$tool" explain all_reduce -s 1G --topo "$here/rtx5090x8.xml" -n 16 2>/dev/null; then
    echo "failed: hosts in parts, or without network, are explained"
    failed=1
fi
exit $failed
