# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/algo/algos.def lib/algo/registry.c lib/algo/flat.c lib/algo/ring.c lib/algo/tree.c \
	lib/algo/dbtree.c lib/algo/recdbl.c lib/algo/twoshot.c lib/algo/rhd.c \
	lib/algo/sag.c lib/algo/pairwise.c lib/algo/binomial.c lib/algo/bruck.c lib/algo/chain.c lib/algo/hier.c lib/algo/hier_parts.c lib/algo/hier.h lib/algo/order.c lib/algo/order.h
