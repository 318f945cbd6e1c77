// SPDX-License-Identifier: BSD-3-Clause
/* Modules, functions and launches. An image only has to look like one: the code is the C build of the same kernels. */
#include <stdlib.h>
#include <string.h>

#include "exec/device/device.h"
#include "tests/fakecuda/queue.h"
#include "tests/fakecuda/test_kernels.h"

extern const struct hoop_device_kernel hoop_device_kernels[] __attribute__((weak));

enum { FUNCTIONS = 64 };

struct fake_module {
    struct fake_context *context;
    struct fake_function functions[FUNCTIONS];
    int count;
    bool unloaded;
    struct fake_module *next;
};

static int load(struct fake_module **result, const void *image)
{
    struct fake_context *context = fake_current();
    struct fake_module *module;
    uint32_t magic;

    if (!result || !image)
        return INVALID_VALUE;
    memcpy(&magic, image, sizeof magic);
    if (magic != FAKE_MAGIC)
        return INVALID_IMAGE;
    if (fake_options.NO_BINARY)
        return NO_BINARY_FOR_GPU;
    fake_context_wait(context);
    module = calloc(1, sizeof *module);
    if (!module)
        return OUT_OF_MEMORY;
    fake_lock();
    module->context = context;
    module->next = context->modules;
    context->modules = module;
    fake_unlock();
    *result = module;
    return OK;
}

FAKE_ENTRY(cuModuleLoadData, struct fake_module **module, const void *image)
{
    FAKE_ENTER(cuModuleLoadData);
    return load(module, image);
}

FAKE_ENTRY(cuModuleLoadDataEx, struct fake_module **module, const void *image, unsigned count, const int *options,
           void **values)
{
    FAKE_ENTER(cuModuleLoadDataEx);
    (void)count, (void)options, (void)values;
    return load(module, image);
}

/* With the lock. */
static bool module_lives(const struct fake_module *module)
{
    for (const struct fake_module *each = fake_current()->modules; each; each = each->next)
        if (each == module)
            return !each->unloaded;
    return false;
}

FAKE_ENTRY(cuModuleUnload, struct fake_module *module)
{
    int status = INVALID_HANDLE;

    FAKE_ENTER(cuModuleUnload);
    fake_context_wait(fake_current());
    fake_lock();
    if (module_lives(module)) {
        module->unloaded = true;
        status = OK;
    }
    fake_unlock();
    return status;
}

static const struct hoop_device_kernel *find_kernel(const char *name)
{
    const struct hoop_device_kernel *const tables[] = {hoop_device_kernels, fake_test_kernels};

    for (int i = 0; i < 2; i++)
        for (const struct hoop_device_kernel *kernel = tables[i]; kernel && kernel->name; kernel++)
            if (strcmp(kernel->name, name) == 0)
                return kernel;
    return NULL;
}

FAKE_ENTRY(cuModuleGetFunction, struct fake_function **function, struct fake_module *module, const char *name)
{
    const struct hoop_device_kernel *kernel;
    int status = INVALID_HANDLE;

    FAKE_ENTER(cuModuleGetFunction);
    if (!function || !name)
        return INVALID_VALUE;
    kernel = find_kernel(name);
    if (!kernel)
        return NOT_FOUND;
    fake_lock();
    if (module_lives(module) && module->count < FUNCTIONS) {
        *function = &module->functions[module->count++];
        **function = (struct fake_function){.kernel = kernel, .module = module};
        status = OK;
    }
    fake_unlock();
    return status;
}

static bool function_lives(const struct fake_function *function)
{
    bool found = false;

    fake_lock();
    for (const struct fake_module *module = fake_current()->modules; module && !found; module = module->next)
        found = function >= module->functions && function < module->functions + module->count && !module->unloaded;
    fake_unlock();
    return found;
}

FAKE_ENTRY(cuFuncGetAttribute, int *value, int attribute, struct fake_function *function)
{
    FAKE_ENTER(cuFuncGetAttribute);
    if (!function_lives(function))
        return INVALID_HANDLE;
    if (!value || attribute < 0 || attribute > 16)
        return INVALID_VALUE;
    function->loaded = true;
    *value = attribute == 0 ? 1024 : attribute == 4 ? 64 : attribute == 5 || attribute == 6 ? 75 : 0;
    return OK;
}

FAKE_ENTRY(cuFuncSetAttribute, struct fake_function *function, int attribute, int value)
{
    FAKE_ENTER(cuFuncSetAttribute);
    (void)value;
    return !function_lives(function) ? INVALID_HANDLE : attribute == 8 || attribute == 9 ? OK : INVALID_VALUE;
}

FAKE_ENTRY(cuFuncLoad, struct fake_function *function)
{
    FAKE_ENTER(cuFuncLoad);
    if (!function_lives(function))
        return INVALID_HANDLE;
    function->loaded = true;
    return OK;
}

FAKE_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, struct fake_function *function, int threads,
           size_t shared)
{
    FAKE_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    if (!function_lives(function))
        return INVALID_HANDLE;
    if (!blocks || threads < 1)
        return INVALID_VALUE;
    *blocks = threads > 1024 || shared > 49152 ? 0 : fake_device(fake_current()->device)->blocks;
    return OK;
}

/* The argument by pointer or packed in a buffer. */
static const void *find_argument(const struct fake_function *function, void **parameters, void **extra)
{
    const void *buffer = NULL;
    size_t size = 0;

    if (parameters)
        return function->kernel->argument_size ? parameters[0] : "";
    for (; extra && *extra; extra += 2) {
        if (*extra == (void *)1)
            buffer = extra[1];
        else if (*extra == (void *)2)
            size = *(const size_t *)extra[1];
    }
    return size == function->kernel->argument_size ? buffer : NULL;
}

static int launch(struct fake_function *function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                  struct fake_stream *handle, const void *argument, bool cooperative)
{
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], threads = (uint64_t)block[0] * block[1] * block[2];
    struct fake_context *context = fake_current();
    struct fake_operation *operation;
    struct fake_stream *stream;
    int status;

    if (blocks == 0 || threads == 0 || !argument || grid[1] > 65535 || grid[2] > 65535)
        return INVALID_VALUE;
    if (threads > 1024 || shared > 49152)
        return INVALID_VALUE;
    if (cooperative && !fake_options.COOPERATIVE)
        return NOT_SUPPORTED;
    if (cooperative && blocks > (uint64_t)fake_engine_room(context->device))
        return COOPERATIVE_LAUNCH_TOO_LARGE;
    if (fake_options.LOAD_WAITS && !function->loaded)
        fake_context_wait(context);
    function->loaded = true;
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    operation = fake_operation_new(FAKE_LAUNCH, function->kernel->argument_size);
    operation->launch = (struct fake_launch){function, (unsigned)blocks, (unsigned)threads, cooperative};
    memcpy(fake_operation_tail(operation), argument, function->kernel->argument_size);
    status = fake_stream_add(stream, operation);
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuLaunchKernel, struct fake_function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
           unsigned by, unsigned bz, unsigned shared, struct fake_stream *stream, void **parameters, void **extra)
{
    FAKE_ENTER(cuLaunchKernel);
    if (!function_lives(function))
        return INVALID_HANDLE;
    return launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream,
                  find_argument(function, parameters, extra), false);
}

FAKE_ENTRY(cuLaunchCooperativeKernel, struct fake_function *function, unsigned gx, unsigned gy, unsigned gz,
           unsigned bx, unsigned by, unsigned bz, unsigned shared, struct fake_stream *stream, void **parameters)
{
    FAKE_ENTER(cuLaunchCooperativeKernel);
    if (!function_lives(function))
        return INVALID_HANDLE;
    return launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream,
                  find_argument(function, parameters, NULL), true);
}

FAKE_ENTRY(cuLaunchKernelEx, const struct fake_launch_config *config, struct fake_function *function, void **parameters,
           void **extra)
{
    bool cooperative = false;

    FAKE_ENTER(cuLaunchKernelEx);
    if (!config || !function_lives(function))
        return INVALID_HANDLE;
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id == FAKE_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attributes[i].value.number != 0;
    return launch(function, (unsigned[]){config->grid_x, config->grid_y, config->grid_z},
                  (unsigned[]){config->block_x, config->block_y, config->block_z}, config->shared_bytes, config->stream,
                  find_argument(function, parameters, extra), cooperative);
}
