// SPDX-License-Identifier: BSD-3-Clause
/* The cost model's inner side: its constants by number. The rest is in hoop/plan.h. */
#ifndef HOOP_PLAN_MODEL_H
#define HOOP_PLAN_MODEL_H

#include "hoop/plan.h"

enum {
    HOOP_MODEL_VERSION = 1, /* of model files */
#define CONSTANT(name, unit, standard, least, most, help) HOOP_MODEL_##name,
    HOOP_MODEL_BEFORE = -1,
#include "plan/model.def"
#undef CONSTANT
    HOOP_MODEL_CONSTANTS
};

/* Constant i, 0 … HOOP_MODEL_CONSTANTS - 1, in the order of model.def. */
double hoop_model_get(const struct hoop_model *model, int i);

/* Is every constant in its range? For a model that came over the wire. */
bool hoop_model_valid(const struct hoop_model *model);

#endif
