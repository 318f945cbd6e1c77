// SPDX-License-Identifier: BSD-3-Clause
/* A multi-layer perceptron: inputs - hidden … - classes, softmax with cross entropy at the end.
 *
 * The parameters are a table of named tensors; whoever moves them (broadcast, buckets, optimizer, digests) walks that
 * table and knows nothing of layers. A weight tensor has a row for each input and a column for each output, a bias one
 * row. Gradients live where the owner of the buckets says. Backward calls `ready` for each tensor as soon as its
 * gradient is complete, last layer first. */
#ifndef TRAINER_MODEL_H
#define TRAINER_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum { MODEL_LAYERS = 16, MODEL_TENSORS = 2 * MODEL_LAYERS, MODEL_ALIGN = 16 /* floats */ };

/* Between layers.
 *
 * ReLU's slope jumps at 0: an input that rounding moves across it changes a gradient visibly, and two runs that differ
 * in the last bit (other numbers of ranks add in another order) drift apart within a hundred steps. The smooth one is
 * ReLU with its corner rounded off by a parabola between -1/2 and 1/2 (Shamir, Lin, Coviello 2020), and such runs stay
 * together. */
enum activation { ACTIVATION_RELU, ACTIVATION_SMOOTH };

struct tensor {
    char name[16]; /* "weight1", "bias1", … */
    size_t rows, columns;
    size_t count;  /* rows × columns */
    size_t offset; /* of its values in model.values, a multiple of MODEL_ALIGN */
    int decays;    /* whether weight decay applies */
    float *value;
    float *gradient; /* NULL until the buckets are made */
};

struct model {
    int layers;                     /* 1 … MODEL_LAYERS */
    size_t width[MODEL_LAYERS + 1]; /* width[0]: inputs, width[layers]: classes */
    enum activation activation;
    int tensors; /* 2 × layers: weight and bias of layer 1, then of layer 2, … */
    struct tensor tensor[MODEL_TENSORS];
    size_t parameters;   /* numbers in all tensors */
    size_t values_count; /* floats of `values`, with the alignment between tensors */
    float *values;       /* all parameters */
    size_t rows;         /* most samples at a time */
    float *output[MODEL_LAYERS +
                  1]; /* output[i]: rows × width[i] of layer i, i ≥ 1; output[layers]: logits, then their gradient */
    float *scratch;   /* rows × the widest layer: gradient of a hidden layer's output */
    float *other_scratch;
};

/* Lay out the table: no memory yet, model->values_count tells what the caller has to bring. layers + 1 widths. */
void model_plan(struct model *model, int layers, const size_t *widths, enum activation activation);

/* Give the model its parameter memory (values_count floats, zero-filled, the caller's) and room for rows samples.
 * Returns 0 or an exit code. */
int model_make(struct model *model, float *values, size_t rows);

/* He initialisation for ReLU: weights uniform with variance 2 / inputs, biases 0. A pure function of the seed. */
void model_initialise(struct model *model, uint64_t seed);

/* Compute the logits of `rows` samples (inputs as rows of width[0]). */
void model_forward(struct model *model, const float *inputs, size_t rows);

/* After forward: the sum of the samples' losses, in double, and how many are classified right. */
double model_loss(const struct model *model, const uint8_t *labels, size_t rows, int64_t *right);

/* After forward: gradients of (scale × sum of losses). rows may be 0: then all gradients are 0.
 * ready(context, tensor) is called once for every tensor, last first; a result that is not 0 ends the pass and is
 * returned. */
int model_backward(struct model *model, const float *inputs, const uint8_t *labels, size_t rows, float scale,
                   int (*ready)(void *context, int tensor), void *context);

void model_free(struct model *model);

#endif
