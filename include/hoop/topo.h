// SPDX-License-Identifier: BSD-3-Clause
#ifndef HOOP_TOPO_H
#define HOOP_TOPO_H
#endif
