// SPDX-License-Identifier: BSD-3-Clause
/* What hoop itself has noted in XML of hwloc. node_of(object) of objects is in userdata, plus one; 0: none. */
#ifndef HOOP_TOPO_SOURCE_HWLOC_H
#define HOOP_TOPO_SOURCE_HWLOC_H

#include "topo/model.h"

/* Did hoop write the file, and a word with it: "1", the form; "cpus-made-up", "memory-made-up", "no-cores"? */
bool hoop_hwloc_noted(hwloc_topology_t hwloc, const char *word);

/* Put what is noted over what was read, before sealing.
 * Errors: HOOP_ERR_ARG (a note that cannot be), HOOP_ERR_MEMORY. */
enum hoop_status hoop_hwloc_take_notes(struct hoop_topo *topo, hwloc_topology_t hwloc);

#endif
