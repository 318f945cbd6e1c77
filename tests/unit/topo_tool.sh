#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-topo on machines whose picture is known: output byte by byte, exit codes, messages.
#
# box.xml is an invented machine. Package 0: a switch with GPU0 and mlx5_2 below its ports, GPU1 on a second switch below
# it, GPU2 on a root port of another host bridge. Package 1: GPU3 and mlx5_10, both on root ports of one host bridge, a
# console chip, and an Ethernet port on the root bus. Four NVLinks of 25 GB/s join GPU0 and GPU1.
set -u
tool=${HOOP_TOPO:-$TEST_BUILD/tools/topo/hoop-topo}
here=$TEST_SOURCE/tests/unit/topo
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
export LC_ALL=C

# expect NAME ARGUMENTS: the output is the file NAME.
expect() {
    name=$1
    shift
    if ! "$tool" "$@" >"$scratch/out" 2>"$scratch/err" || ! diff -u "$here/$name" "$scratch/out"; then
        echo "failed: hoop-topo $* against $here/$name: $(cat "$scratch/err")"
        failed=1
    fi
}

# refuse CODE PATTERN ARGUMENTS: exit code, nothing on standard output, a message that matches.
refuse() {
    code=$1 pattern=$2
    shift 2
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    if [ $got -ne "$code" ] || [ -s "$scratch/out" ] || ! grep -q -- "$pattern" "$scratch/err"; then
        echo "failed: hoop-topo $*: exit $got, not $code; or the message is not about \"$pattern\":"
        cat "$scratch/out" "$scratch/err"
        failed=1
    fi
}

cd "$here" || exit 1

# A bridge with one device below it is not drawn, but its link counts.
cat >"$scratch/narrow.xml" <<'END'
<system version="1"><cpu numaid="0" affinity="f" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
<pci busid="0000:10:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
<pci busid="0000:11:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
<gpu dev="0" sm="80"/></pci></pci></cpu></system>
END
[ "$("$tool" --input "$scratch/narrow.xml" --svg | grep -o '[0-9.]* GB/s')" = '15.8 GB/s' ] || { echo "failed: the narrow link is not shown"; failed=1; }

# What HOOP_TOPO_FILE names stands for this machine; what --input names comes before it.
HOOP_TOPO_FILE=box.xml expect box.matrix
grep -q 'HOOP_TOPO_FILE: this is box.xml, not this machine' "$scratch/err" || { echo "failed: no word of HOOP_TOPO_FILE"; failed=1; }
HOOP_TOPO_FILE=nccl.xml expect box.matrix --input box.xml
HOOP_TOPO_FILE=nowhere.xml refuse 1 'nowhere.xml'
expect box.matrix --input box.xml
expect box.matrix -m --input=box.xml
expect box.matrix_pci --input box.xml -mp
expect box.matrix_pci --input box.xml --matrix_pci
expect nccl.matrix --input nccl.xml
expect nccl.paths --input nccl.xml --nccl
expect nccl.tree --input nccl.xml --tree
expect nccl.svg --input nccl.xml --svg
expect nccl.svg --input nccl.xml --export svg
expect nccl.dot --input nccl.xml --export dot
# What is exported for NCCL reads as the same paths and rings.
"$tool" --input nccl.xml --export nccl >"$scratch/again.xml" || failed=1
for mode in --nccl --rings; do
    diff -u <("$tool" --input nccl.xml $mode | sed '/^Devices/q') <("$tool" --input "$scratch/again.xml" $mode | sed '/^Devices/q') || {
        echo "failed: --export nccl reads as another machine ($mode)"
        failed=1
    }
done
# In hoop's own form a machine is the same to the last fact, and the text stays what it is.
for file in box.xml nccl.xml a100x8.xml 'synthetic:pack:2 [numa(memory=4GB)] core:2 pu:2'; do
    "$tool" --input "$file" --export hoop >"$scratch/own.xml" && "$tool" --input "$scratch/own.xml" --export hoop >"$scratch/own2.xml" || failed=1
    diff "$scratch/own.xml" "$scratch/own2.xml" | grep '^[<>]' | grep -v '<hoop-topology' && failed=1
    for mode in --json -m --nccl; do
        diff <("$tool" --input "$file" $mode | sed 's/"origin": "[^"]*"//') <("$tool" --input "$scratch/own.xml" $mode | sed 's/"origin": "[^"]*"//') || {
            echo "failed: --export hoop reads as another machine: $file $mode"
            failed=1
        }
    done
done
# In XML of hwloc, too (hwloc 2 knows no PCI domain above ffff), and lstopo has no complaint.
plain() { sed 's/ origin="[^"]*"//' "$1" | sort; }
sed 's/10000:/9000:/' nccl.xml >"$scratch/nccl.xml"
for file in box.xml "$scratch/nccl.xml" a100x8.xml 'synthetic:pack:2 [numa(memory=4GB)] core:2 pu:2' 'synthetic:core:2 pu:1'; do
    if ! { "$tool" --input "$file" --export hoop >"$scratch/own.xml" && "$tool" --input "$file" --export hwloc >"$scratch/hwloc.xml" 2>"$scratch/err" &&
        "$tool" --input "$scratch/hwloc.xml" --export hoop >"$scratch/own2.xml" && [ ! -s "$scratch/err" ] && diff <(plain "$scratch/own.xml") <(plain "$scratch/own2.xml"); }; then
        echo "failed: --export hwloc reads as another machine: $file: $(cat "$scratch/err")"
        failed=1
    fi
    command -v lstopo-no-graphics >"$scratch/which" || continue
    if ! lstopo-no-graphics -i "$scratch/hwloc.xml" >"$scratch/ls" 2>&1 || ! grep -q Machine "$scratch/ls" || grep -qi hwloc "$scratch/ls"; then
        echo "failed: lstopo on --export hwloc of $file: $(cat "$scratch/ls")"
        failed=1
    fi
done
"$tool" --input nccl.xml --export hwloc 2>&1 >/dev/null | grep -q 'domain 10000' || { echo "failed: no word of what hwloc leaves out"; failed=1; }
"$tool" --input a100x8.xml --export hwloc | sed '0,/count=12/s//count=twelve/' >"$scratch/bad.xml"
refuse 1 'info attribute hoop.to=.*count=twelve.* cannot be' --input "$scratch/bad.xml"
cat >"$scratch/odd.xml" <<'END'
<hoop-topology version="1"><node kind="machine" number="0" parent="-1" source="sysfs" cpus="f"/>
<node kind="package" number="0" parent="0" source="sysfs" cpus="3"/><node kind="NUMA node" number="0" parent="0" source="sysfs" cpus="6" numas="1"/></hoop-topology>
END
refuse 1 'no form for this machine' --input "$scratch/odd.xml" --export hwloc
sed 's/version="1"/version="9"/' "$scratch/own.xml" >"$scratch/later.xml"
refuse 1 'this hoop reads form 1' --input "$scratch/later.xml"
sed '0,/parent="0"/s//parent="7"/' "$scratch/own.xml" >"$scratch/bad.xml"
refuse 1 'parent="7" cannot be' --input "$scratch/bad.xml"
"$tool" --input nccl.xml --doctor -i NIC2 | grep -q 'GPU[01]' && { echo "failed: --doctor -i tells of other devices"; failed=1; }
expect nccl.doctor --input nccl.xml --doctor
expect box.rings --input box.xml --rings
expect nccl.rings --input nccl.xml --rings
expect box.chains --input box.xml --trees
expect box.channels --input box.xml --channels
expect a100x8.rings --input a100x8.xml --rings -n 2
expect a100x8.chains --input a100x8.xml --trees -n 3 -i 4,5,6,7,NIC2,NIC3
expect box.paths --input box.xml --nccl
expect two-nodes.matrix --input 'synthetic:pack:2 [numa(memory=4GB)] core:2 pu:2'
expect two-nodes.matrix -mp --input 'synthetic:pack:2 [numa(memory=4GB)] core:2 pu:2'

# What a person states goes over what the file says: the GPU is near another NUMA node, links are slower, gone or new.
cat >"$scratch/facts" <<'END'
# GPU2 hangs on a host bridge that the firmware puts elsewhere
GPU2       numa 1
mlx5_10    port_speed 12.5
0000:06:00.0 gigabytes_per_second 3.5   # stated, whatever width says
0000:06:00.0 width 8
GPU0       width 8
GPU0       gigatransfers 16
GPU0 GPU1  p2p no
GPU0 GPU1  nvlink 0
GPU2 GPU3  nvlink 4
END
"$tool" --input box.xml --facts "$scratch/facts" >"$scratch/out" || failed=1
[ "$(sed -n '2,5p' "$scratch/out")" = $'GPU0\t X \tPXB\tSYS\tSYS\tPIX\tSYS\t0-3\t0\t\tN/A
GPU1\tPXB\t X \tSYS\tSYS\tPXB\tSYS\t0-3\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tNV4\tSYS\tNODE\t4-7\t1\t\tN/A
GPU3\tSYS\tSYS\tNV4\t X \tSYS\tPHB\t4-7\t1\t\tN/A' ] || { echo "failed: --facts -m"; cat "$scratch/out"; failed=1; }
HOOP_TOPO_FACTS=$scratch/facts "$tool" --input box.xml --json 2>"$scratch/err" >"$scratch/out" || failed=1
for fact in '"port_gigabytes_per_second": {"value": 12.5, "source": "override"}' '"gigabytes_per_second": {"value": 3.5, "source": "override"}' \
    '"gigabytes_per_second": {"value": 15.753846153846155, "source": "override"}' '"count": {"value": 4, "source": "override"}' \
    '"from": "GPU1", "to": "GPU0", "read": "NS"'; do
    grep -qF "$fact" "$scratch/out" || { echo "failed: --facts --json without $fact"; failed=1; }
done
grep -q 'HOOP_TOPO_FACTS' "$scratch/err" || { echo "failed: no word of HOOP_TOPO_FACTS"; failed=1; }
"$tool" --input box.xml --facts "$scratch/facts" --export hoop >"$scratch/own.xml" && "$tool" --input "$scratch/own.xml" --export hoop | diff <(plain "$scratch/own.xml") <(plain -) || failed=1
refuse 1 'nowhere.facts' --input box.xml --facts nowhere.facts
while read -r pattern fact; do
    printf '\n%s\n' "$fact" >"$scratch/wrong"
    refuse 1 ":2: .*${pattern//_/ }" --input box.xml --facts "$scratch/wrong"
done <<'END'
there_is_no_"GPU9" GPU9 numa 1
numa_cannot_be_"7" GPU0 numa 7
too_few_words GPU0 numa
too_few_words,_or a b c d e
has_no_fact_"port.speed" GPU0 port_speed 1
from_0_to_64 GPU0 width 99
width_cannot_be_"x8" 0000:03:00.0 width x8
the_two_are_one GPU0 GPU0 p2p no
between_two_GPUs GPU0 NIC0 p2p no
yes_or_no GPU0 GPU1 p2p maybe
join_two_GPUs GPU0 NIC0 nvlink 3
side_by_side GPU0 GPU1 nvlink 65
where_a_link_joins GPU0 GPU2 gigabytes_per_second 3
of_a_device_or_bridge Machine numa 1
END

# said TEXT ARGUMENTS: the output is that text.
said() {
    text=$1
    shift
    got=$("$tool" "$@" 2>&1)
    if [ "$got" != "$text" ]; then
        echo "failed: hoop-topo $* says:"
        echo "$got"
        failed=1
    fi
}
said $'The GPUs that have an affinity with CPU 2 are:\n0, 1, 2' --input box.xml -c 2
said $'The GPUs that have an affinity with CPU 99 are:\nNone' --input box.xml -c 99
said $'The GPUs that connect to GPU 0 via multiple PCIe switches are:\n1' --input box.xml -n 2 -i 0
said $'The GPUs that connect to GPU 3 via an SMP interconnect link between NUMA nodes are:\n0, 1, 2' --input box.xml -n 5 -i GPU3
said 'Device GPU0 is connected to device NIC0 by way of a single PCIe switch.' --input box.xml -p 0 mlx5_2
said 'Device GPU2 is connected to device GPU3 by way of an SMP interconnect link between NUMA nodes.' --input box.xml -p -i 0000:41:00.0,3
[ "$("$tool" --input box.xml -p2p n -i 0,1 | head -n 3)" = $' \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t' ] || { echo "failed: -p2p n"; failed=1; }
[ "$("$tool" --input box.xml -p2p n -i 0,2 | head -n 3)" = $' \tGPU0\tGPU2\t\n GPU0\tX\tU\t\n GPU2\tU\tX\t' ] || { echo "failed: -p2p n"; failed=1; }
[ "$("$tool" --input box.xml -m -i 3,NIC1 | sed -n '2,3p')" = $'GPU3\t X \tPHB\t4-7\t1\t\tN/A\nNIC1\tPHB\t X \t\t\t\t' ] || { echo "failed: -m -i"; failed=1; }
[ "$("$tool" --input nccl.xml --nccl -i mlx5_1,dev0 | head -n 3)" = $'\tGPU0\tNET1\nGPU0\tX\tPHB\nNET1\tPHB\tX' ] || { echo "failed: --nccl -i"; failed=1; }
"$tool" --input box.xml --tree -i 3 | grep -q 'GPU[012]' && { echo "failed: --tree -i"; failed=1; }
refuse 1 'of this machine' --measure --input box.xml
# The figures are the machine's; that there is one for each pair, and none is nothing, is ours.
if [ "$(nproc)" -gt 1 ]; then
    "$tool" --measure >"$scratch/measured" || failed=1
    awk '/^GB\/s|^ns/ { tables++ } tables && /^CPU/ { for (i = 2; i < NF; i++) if ($i != "X" && !($i > 0)) bad = 1; rows++ }
        /^class/ { exit } END { exit bad || tables != 2 || rows < 4 || rows % 2 }' "$scratch/measured" || {
        echo "failed: --measure"
        cat "$scratch/measured"
        failed=1
    }
fi
refuse 2 'one of r, w, n, a, p' -p2p x
refuse 2 'from 0 to 5' -n 6
refuse 2 'at least one host' -n 0 --rings
refuse 1 'no network interface' --rings -n 2 --input rtx5090x8.xml
refuse 1 'there are 1 GPU' --rings -i 0 --input box.xml
refuse 2 'one of json, svg, dot, nccl, hwloc, hoop' --export png
refuse 1 'rings join 2 to 16' --input 'synthetic:pack:2 core:2 pu:1' --rings
refuse 1 'no such device' --input box.xml -i GPU9

# The version of hwloc is in the first line of the tree and in the JSON.
"$tool" --input box.xml --tree | sed '1s/API [0-9.]*/API/' | diff -u box.tree - || failed=1
"$tool" --input box.xml --json | sed '1s/API [0-9.]*/API/' | diff -u box.json - || failed=1

"$tool" >"$scratch/live" || failed=1
if ! head -n 1 "$scratch/live" | grep -q $'^\t.*CPU Affinity\tNUMA Affinity\tGPU NUMA ID$'; then
    echo "failed: head of the live matrix"
    failed=1
fi
grep -q "$(printf '\033')" "$scratch/live" && { echo "failed: escapes without a terminal"; failed=1; }

refuse 2 'no arguments are expected' something
refuse 2 'unrecognized option' --nonsense
refuse 1 'neither XML of hwloc' --input box.tree
refuse 1 'No such file' --input none.xml
if [ -w /dev/full ]; then
    "$tool" --input box.xml >/dev/full 2>"$scratch/err" && { echo "failed: a full disk is no error"; failed=1; }
fi
exit $failed
