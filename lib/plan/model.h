// SPDX-License-Identifier: BSD-3-Clause
/* The cost model's inner side: its constants by number. The rest is in hoop/plan.h. */
#ifndef HOOP_PLAN_MODEL_H
#define HOOP_PLAN_MODEL_H

#include "hoop/plan.h"

enum {
    HOOP_MODEL_VERSION = 1,  /* of model files */
    HOOP_MODEL_FILE = 65536, /* most bytes of one */
#define CONSTANT(name, unit, standard, least, most, help) HOOP_MODEL_##name,
    HOOP_MODEL_BEFORE = -1,
#include "plan/model.def"
#undef CONSTANT
    HOOP_MODEL_CONSTANTS
};

/* Constant i, 0 … HOOP_MODEL_CONSTANTS - 1, in the order of model.def. */
double hoop_model_get(const struct hoop_model *model, int i);

/* The constants that a value of the setting HOOP_MODEL stands for: "" the built-in ones, "auto" this machine's file if it is there,
 * else a file. origin (or NULL) receives in words where they come from.
 * Errors: HOOP_ERR_SETUP, HOOP_ERR_MEMORY. */
enum hoop_status hoop_model_choose(struct hoop_model *model, const char *word, char *origin, size_t size);

/* Is every constant in its range? For a model that came over the wire. */
bool hoop_model_valid(const struct hoop_model *model);

#endif
