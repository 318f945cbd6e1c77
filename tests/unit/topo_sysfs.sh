#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-topo on a made-up copy of /sys: two sockets; on the first a switch with a GPU on a port of eight lanes and an RDMA interface
# with a virtual function; a GPU on the second, near which no firmware tells; a third in a PCI domain of more than 16 bits.
# Then the same as an archive, and copies that would lead out of the folder.
set -u
tool=${HOOP_TOPO:-$TEST_BUILD/tools/topo/hoop-topo}
here=$TEST_SOURCE/tests/unit/topo
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
export LC_ALL=C TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
sys=$scratch/box/sys
mkdir -p "$sys/bus/pci/devices" "$scratch/box/proc"
printf 'processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n' >"$scratch/box/proc/cpuinfo"

for cpu in 0 1 2 3; do
    mkdir -p "$sys/devices/system/cpu/cpu$cpu/topology"
    echo $((cpu / 2)) >"$sys/devices/system/cpu/cpu$cpu/topology/physical_package_id"
    printf '%x\n' $((1 << cpu)) >"$sys/devices/system/cpu/cpu$cpu/topology/thread_siblings"
done
for node in 0 1; do
    mkdir -p "$sys/devices/system/node/node$node"
    printf '00000000,%08x\n' $((3 << 2 * node)) >"$sys/devices/system/node/node$node/cpumap"
    echo "Node $node MemTotal:       1048576 kB" >"$sys/devices/system/node/node$node/meminfo"
done

# function PATH CLASS VENDOR DEVICE NUMA [SPEED WIDTH]: the last part of the path is its bus id.
function_at() {
    local at=$sys/devices/$1
    mkdir -p "$at"
    ln -s "../../../devices/$1" "$sys/bus/pci/devices/${1##*/}"
    echo "0x$2" >"$at/class"
    echo "0x$3" >"$at/vendor"
    echo "0x$4" >"$at/device"
    echo "$5" >"$at/numa_node"
    if [ $# -gt 5 ]; then
        echo "$6" >"$at/max_link_speed"
        echo "$7" >"$at/max_link_width"
        echo '2.5 GT/s PCIe' >"$at/current_link_speed"
        echo "$7" >"$at/current_link_width"
    fi
}
root=pci0000:00/0000:00:01.0
switch=$root/0000:01:00.0
function_at $root 060400 8086 352a 0 '32.0 GT/s PCIe' 16
function_at $switch 060400 1000 c030 0 '32.0 GT/s PCIe' 16
function_at $switch/0000:02:00.0 060400 1000 c030 0 '32.0 GT/s PCIe' 8
function_at $switch/0000:02:00.0/0000:03:00.0 030200 10de 2330 0 '32.0 GT/s PCIe' 16
function_at $switch/0000:02:01.0 060400 1000 c030 0 '32.0 GT/s PCIe' 16
function_at $switch/0000:02:01.0/0000:04:00.0 020700 15b3 1021 0 '32.0 GT/s PCIe' 16
function_at $switch/0000:02:01.0/0000:04:00.1 020700 15b3 101e 0
function_at pci0000:80/0000:80:01.0 060400 8086 352a -1
function_at pci0000:80/0000:80:01.0/0000:81:00.0 030200 10de 2330 -1 Unknown 0
function_at pci10000:00/10000:00:02.0 120000 1002 74a1 1 '16.0 GT/s PCIe' 16
echo 4 >"$sys/devices/$switch/0000:02:00.0/0000:03:00.0/current_link_width"
nic=$sys/devices/$switch/0000:02:01.0/0000:04:00.0
mkdir -p "$nic/infiniband/mlx5_0/ports/1" "$nic/net/ib0" "$sys/kernel/iommu_groups/7"
echo '400 Gb/sec (4X NDR)' >"$nic/infiniband/mlx5_0/ports/1/rate"
# port FOLDER STATE LAYER, and gid FOLDER INDEX GID TYPE INTERFACE: what the kernel tells of a verbs port.
port() {
    mkdir -p "$1/gids" "$1/gid_attrs/types" "$1/gid_attrs/ndevs"
    echo "$2" >"$1/state"
    echo "$3" >"$1/link_layer"
}
gid() {
    echo "$3" >"$1/gids/$2"
    [ -z "$4" ] || echo "$4" >"$1/gid_attrs/types/$2"
    [ -z "$5" ] || echo "$5" >"$1/gid_attrs/ndevs/$2"
}
port "$nic/infiniband/mlx5_0/ports/1" '4: ACTIVE' InfiniBand
gid "$nic/infiniband/mlx5_0/ports/1" 0 fe80:0000:0000:0000:506b:4b03:00ba:0001 'IB/RoCE v1' ''
gid "$nic/infiniband/mlx5_0/ports/1" 1 0000:0000:0000:0000:0000:0000:0000:0000 '' ''
roce=$sys/devices/$switch/0000:02:01.0/0000:04:00.1
port "$roce/infiniband/mlx5_10/ports/1" '4: ACTIVE' Ethernet
gid "$roce/infiniband/mlx5_10/ports/1" 0 fe80:0000:0000:0000:506b:4bff:feba:0002 'IB/RoCE v1' eth1
gid "$roce/infiniband/mlx5_10/ports/1" 10 0000:0000:0000:0000:0000:ffff:0a01:0005 'IB/RoCE v1' eth1
gid "$roce/infiniband/mlx5_10/ports/1" 3 fe80:0000:0000:0000:506b:4bff:feba:0002 'RoCE v2' eth1
gid "$roce/infiniband/mlx5_10/ports/1" bad fe80:0000:0000:0000:506b:4bff:feba:0002 'RoCE v2' eth1
gid "$roce/infiniband/mlx5_10/ports/1" 4 'fe80:0000' 'RoCE v2' eth1
ln -s ../0000:04:00.0 "$sys/devices/$switch/0000:02:01.0/0000:04:00.1/physfn"
ln -s ../../../../../../kernel/iommu_groups/7 "$nic/iommu_group"
{
    head -c 256 /dev/zero                              # then one capability: ACS, with request redirect on
    printf '\x0d\x00\x01\x00\x00\x00\x05\x00'
    head -c 248 /dev/zero
} >"$sys/devices/$switch/0000:02:00.0/config"

# expect NAME COMMAND...: what it prints is the file NAME.
expect() {
    local name=$1
    shift
    if ! "$@" >"$scratch/out" 2>"$scratch/err" || ! diff -u "$here/$name" <(sed "s|$scratch|BOX|" "$scratch/out"); then
        echo "failed: $* against $here/$name: $(cat "$scratch/err")"
        failed=1
    fi
}
expect sysfs.tree "$tool" --input "$scratch/box" --tree
expect sysfs.matrix "$tool" --input "$scratch/box/sys"
expect sysfs.paths "$tool" --input "$scratch/box" --nccl
"$tool" --input "$scratch/box" --json >"$scratch/json" || failed=1
for fact in '"acs_redirect": {"value": 4, "source": "sysfs"}' '"iommu_group": {"value": 7, "source": "sysfs"}' \
    '"virtual_function": true' '"width": {"value": 8, "source": "sysfs"}' '"now_gigatransfers": {"value": 2.5,' \
    '"device_width": {"value": 16,'; do
    grep -qF -- "$fact" "$scratch/json" || { echo "failed: JSON has no $fact"; failed=1; }
done

# The doctor finds the port with ACS, the slot of eight lanes, the GPU that nobody places, and what runs slower than it can.
if "$tool" --input "$scratch/box" --doctor >"$scratch/doctor"; then
    echo "failed: the doctor finds nothing wrong"
    failed=1
fi
for finding in 'wrong  GPU0 and NIC0 share a PCI switch, but ACS at port Bridge2 (0000:02:00.0)' \
    'note   GPU0 could use 16 lanes of 32 GT/s, the port above it 8 of 32' 'wrong  GPU0 runs on 4 of 8 lanes' \
    'note   GPU0 runs at 2.5 of 32 GT/s now' 'note   nobody tells near which NUMA node GPU1 is' \
    'note   NIC1 (mlx5_10): no GID of type RoCE v2 with an address of more' 'note   GPU2 has no RDMA interface on its own PCI switches; the nearest is SYS' '2 wrong, '; do
    grep -qF -- "$finding" "$scratch/doctor" || { echo "failed: the doctor does not say: $finding"; failed=1; }
done
[ $failed -eq 0 ] || cat "$scratch/doctor"
"$tool" --doctor >"$scratch/doctor" # of the machine that runs, whatever it finds
if grep -qvE '^(ok   |note |wrong)  .|^$|^this machine|^not this machine|^[0-9]+ wrong, [0-9]+ to note$' "$scratch/doctor" ||
    ! grep -q 'memfd' "$scratch/doctor"; then
    echo "failed: the doctor of this machine"
    cat "$scratch/doctor"
    failed=1
fi

# With an address that routers know there is nothing to say; a port that is down carries nothing.
gid "$roce/infiniband/mlx5_10/ports/1" 11 0000:0000:0000:0000:0000:ffff:0a01:0005 'RoCE v2' eth1
"$tool" --input "$scratch/box" --doctor | grep -q mlx5_10 && { echo "failed: the doctor of a port that is in order"; failed=1; }
echo '1: DOWN' >"$roce/infiniband/mlx5_10/ports/1/state"
"$tool" --input "$scratch/box" --doctor | grep -q 'note   NIC1 (mlx5_10): its port is not active.*ip link set' || { echo "failed: the doctor of a port that is down"; failed=1; }
echo '4: ACTIVE' >"$roce/infiniband/mlx5_10/ports/1/state"
rm "$roce"/infiniband/mlx5_10/ports/1/gid*/11 "$roce"/infiniband/mlx5_10/ports/1/gid_attrs/*/11
# All of it stays in other forms.
ports() { grep '<gid\|port_state' | sed 's/\(node\|parent\)="[0-9]*"//' | sort; } # hwloc leaves out some nodes before
"$tool" --input "$scratch/box" --export hoop >"$scratch/own.xml"
for form in hoop hwloc; do
    "$tool" --input "$scratch/box" --export $form >"$scratch/form.xml" 2>"$scratch/err"
    if ! diff <(ports <"$scratch/own.xml") <("$tool" --input "$scratch/form.xml" --export hoop | ports); then
        echo "failed: ports in the form $form"
        failed=1
    fi
done

if command -v tar >/dev/null; then
    tar -C "$scratch" -cf "$scratch/box.tar" box
    "$tool" --input "$scratch/box.tar" >"$scratch/out" && diff -u "$here/sysfs.matrix" "$scratch/out" || failed=1
    tar -C "$scratch" -cf "$scratch/empty.tar" box/proc
    "$tool" --input "$scratch/empty.tar" 2>"$scratch/err" && { echo "failed: an archive without /sys is read"; failed=1; }
    grep -q 'no copy of /sys' "$scratch/err" || failed=1
    [ -z "$(ls "$TMPDIR")" ] || { echo "failed: left behind: $(ls "$TMPDIR")"; failed=1; }
fi

# A link that leads out of the copy, a folder that is a link, and a pipe in place of a file: not followed, not waited for.
mkdir -p "$scratch/out of it"
cp -a "$sys/devices/$root" "$scratch/out of it/0000:00:09.0"
ln -s "../../../../../out of it/0000:00:09.0" "$sys/bus/pci/devices/0000:00:09.0"
ln -s /proc/self "$sys/bus/pci/devices/0000:00:0a.0"
ln -s "$scratch/out of it" "$sys/devices/elsewhere"
ln -s ../../../devices/elsewhere/0000:00:09.0 "$sys/bus/pci/devices/0000:00:0b.0"
mkdir "$sys/devices/pci0000:00/0000:00:0c.0"
mkfifo "$sys/devices/pci0000:00/0000:00:0c.0/class"
ln -s ../../../devices/pci0000:00/0000:00:0c.0 "$sys/bus/pci/devices/0000:00:0c.0"
expect sysfs.tree timeout 20 "$tool" --input "$scratch/box" --tree
"$tool" --input "$scratch/box/proc" 2>"$scratch/err" && { echo "failed: any folder is read"; failed=1; }
grep -q 'not a copy of /sys' "$scratch/err" || failed=1
# What KFD tells of AMD GPUs: two links, one, and a pair that only a third joins, which is no link.
sys=$scratch/amd/sys
kfd=$sys/class/kfd/kfd/topology/nodes
mkdir -p "$sys/bus/pci/devices" "$sys/devices/system/cpu/cpu0/topology" "$kfd/0"
echo 0 >"$sys/devices/system/cpu/cpu0/topology/physical_package_id"
echo 1 >"$sys/devices/system/cpu/cpu0/topology/thread_siblings"
printf 'cpu_cores_count 8\nsimd_count 0\nlocation_id 0\n' >"$kfd/0/properties"
for gpu in 1 2 3; do
    function_at pci0000:00/0000:00:0$gpu.0/0000:0$gpu:00.0 030200 1002 740c 0
    mkdir -p "$kfd/$gpu/io_links"
    printf 'cpu_cores_count 0\nsimd_count 416\nlocation_id %d\ndomain 0\n' $((gpu << 8)) >"$kfd/$gpu/properties"
done
# link FROM TO TYPE WEIGHT LEAST MOST
link() {
    local at=$kfd/$1/io_links/$2
    mkdir -p "$at"
    printf 'type %d\nversion_major 0\nnode_from %d\nnode_to %d\nweight %d\nmin_bandwidth %d\nmax_bandwidth %d\n' "$3" "$1" "$2" "$4" "$5" "$6" >"$at/properties"
}
link 1 0 2 20 0 0
link 1 2 11 15 50000 100000
link 2 1 11 15 50000 100000
link 2 3 11 15 50000 50000
link 1 3 11 30 0 0
"$tool" --input "$scratch/amd" --json >"$scratch/json" || failed=1
for fact in '"kind": "XGMI", "a": "GPU0", "b": "GPU1", "source": "sysfs"' '"count": {"value": 2, "source": "sysfs"}, "gigabytes_per_second": {"value": 100,' \
    '"kind": "XGMI", "a": "GPU1", "b": "GPU2"'; do
    grep -qF -- "$fact" "$scratch/json" || { echo "failed: of KFD, JSON has no $fact"; failed=1; }
done
[ "$(grep -c '"kind": "XGMI"' "$scratch/json")" = 2 ] || { echo "failed: of KFD, not two links"; grep XGMI "$scratch/json"; failed=1; }

exit $failed
