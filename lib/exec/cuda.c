// SPDX-License-Identifier: BSD-3-Clause
#include "exec/cuda.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/cuda_bring.h"
#include "exec/cuda_code.h"

enum {
    PROGRAM_BLOCK = 1 << 20, /* bytes of device memory taken for programs at a time */
    LEND_LEAST = 16384,      /* bytes from which a peer reads a piece where it is */
    WARP = 32,
    BRING_LEAST = 4096 /* room of a slot for tables that calls bring */
};

struct program {
    const struct hoop_plan *plan;
    uint64_t address;
};

struct hoop_cuda_exec {
    struct hoop_cuda *cuda;
    const struct hoop_cuda_code *code;
    int ranks, lanes; /* lanes: of plans */
    int pipe_lanes;   /* of messages, too */
    int held;         /* lanes that may be resident */
    hoop_cu_stream uploads;
    hoop_cu_event ended; /* of the last launch */
    bool launched;
    struct hoop_cuda_team *team; /* NULL: none */
    int seat;
    struct hoop_wait *wait; /* for the team */
    struct hoop_device_report *report;
    hoop_cu_address report_address, pipes, states, views, blocks_at;
    struct hoop_cuda_bring *bring;
    bool *connected;
    /* device memory, block by block; never given back while the executor lives */
    hoop_cu_address *block;
    size_t blocks, block_room;
    uint64_t free_at, free_end; /* in the latest block for programs */
    struct program *program;
    size_t programs, program_room;
    struct {
        hoop_cu_address address;
        size_t bytes;
    } scratch[HOOP_CUDA_SCRATCHES];
};

/* ---- memory ---- */

/* A stream capture on this thread must not see what is done here besides. */
static hoop_cu_capture_mode relax(struct hoop_cuda_exec *exec)
{
    hoop_cu_capture_mode mode = HOOP_CU_CAPTURE_RELAXED;

    exec->cuda->driver->cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static void restore(struct hoop_cuda_exec *exec, hoop_cu_capture_mode mode)
{
    exec->cuda->driver->cuThreadExchangeStreamCaptureMode(&mode);
}

static enum hoop_status take_block(struct hoop_cuda_exec *exec, size_t bytes, hoop_cu_address *address)
{
    if (exec->blocks == exec->block_room) {
        const size_t room = exec->block_room ? 2 * exec->block_room : 8;
        hoop_cu_address *more = hoop_realloc(exec->block, room, sizeof *more);
        if (more == NULL)
            return HOOP_ERR_MEMORY;
        exec->block = more;
        exec->block_room = room;
    }
    const hoop_cu_capture_mode mode = relax(exec);
    const enum hoop_status status = hoop_cuda_alloc(exec->cuda, bytes, address);
    restore(exec, mode);
    if (status == HOOP_OK)
        exec->block[exec->blocks++] = *address;
    return status;
}

/* Wait for what was given to the stream for uploads. */
static enum hoop_status settle(struct hoop_cuda_exec *exec, enum hoop_status status)
{
    return status == HOOP_OK ? hoop_cuda_stream_wait(exec->cuda, exec->uploads, hoop_deadline(60)) : status;
}

/* Copy to the device, and wait for that; or fill with a byte. */
static enum hoop_status put(struct hoop_cuda_exec *exec, hoop_cu_address to, const void *from, size_t bytes)
{
    const hoop_cu_capture_mode mode = relax(exec);
    const enum hoop_status status =
        settle(exec, hoop_cuda_copy(exec->cuda, (void *)(uintptr_t)to, from, bytes, exec->uploads));

    restore(exec, mode);
    return status;
}

static enum hoop_status fill(struct hoop_cuda_exec *exec, hoop_cu_address to, unsigned char byte, size_t bytes)
{
    return settle(exec, hoop_cuda_fill(exec->cuda, to, byte, bytes, exec->uploads));
}

enum hoop_status hoop_cuda_exec_scratch(struct hoop_cuda_exec *exec, int use, size_t bytes, hoop_cu_address *address)
{
    if (bytes > exec->scratch[use].bytes) {
        size_t more = exec->scratch[use].bytes * 2 > bytes ? exec->scratch[use].bytes * 2 : bytes;
        if (more < 65536)
            more = 65536;
        const enum hoop_status status = take_block(exec, more, &exec->scratch[use].address);
        if (status != HOOP_OK)
            return status;
        exec->scratch[use].bytes = more;
    }
    *address = exec->scratch[use].address;
    return HOOP_OK;
}

/* ---- making ---- */

static enum hoop_status make_tables(struct hoop_cuda_exec *exec)
{
    const size_t pipes = (size_t)exec->ranks * (size_t)exec->pipe_lanes;
    const size_t pipe_bytes = pipes * sizeof(struct hoop_device_pipe),
                 state_bytes = (size_t)exec->pipe_lanes * sizeof(struct hoop_device_state),
                 view_bytes = HOOP_CUDA_VIEWS * (size_t)exec->ranks * sizeof(uint64_t);

    hoop_cu_address messages; /* now, since to take memory may wait for the device */
    exec->connected = hoop_calloc(pipes, sizeof *exec->connected);
    if (exec->connected == NULL)
        return HOOP_ERR_MEMORY;
    enum hoop_status status = take_block(exec, pipe_bytes, &exec->pipes);
    if (status == HOOP_OK)
        status = take_block(exec, state_bytes, &exec->states);
    if (status == HOOP_OK)
        status = take_block(exec, view_bytes, &exec->views);
    if (status == HOOP_OK)
        status = take_block(exec, 2 * (size_t)exec->ranks * sizeof(struct hoop_device_block), &exec->blocks_at);
    if (status == HOOP_OK)
        status = hoop_cuda_exec_scratch(exec, HOOP_CUDA_MESSAGES, 1, &messages);
    if (status == HOOP_OK)
        status = fill(exec, exec->pipes, 0, pipe_bytes);
    if (status == HOOP_OK)
        status = fill(exec, exec->states, 0, state_bytes);
    if (status == HOOP_OK)
        status = fill(exec, exec->views, 0xff, view_bytes); /* HOOP_DEVICE_NOT_SEEN */
    if (status != HOOP_OK)
        return status;
    void *report;
    status = hoop_cuda_host_alloc(exec->cuda, sizeof *exec->report, &report, &exec->report_address);
    if (status == HOOP_OK) {
        exec->report = report;
        memset(exec->report, 0, sizeof *exec->report);
    }
    return status;
}

enum hoop_status hoop_cuda_exec_new(struct hoop_cuda_exec **made, struct hoop_cuda *cuda, int ranks, int lanes)
{
    struct hoop_cuda_exec *exec;

    if (ranks < 1 || lanes < 1 || lanes > HOOP_DEVICE_PLAN_LANES)
        return hoop_fail(HOOP_ERR_ARG, "%d lanes for %d ranks: a device has 1 … %d lanes", lanes, ranks,
                         HOOP_DEVICE_PLAN_LANES);
    exec = hoop_calloc(1, sizeof *exec);
    if (exec == NULL)
        return HOOP_ERR_MEMORY;
    exec->cuda = cuda;
    exec->ranks = ranks;
    exec->lanes = lanes;
    exec->pipe_lanes = lanes + HOOP_DEVICE_MESSAGE_LANES;
    enum hoop_status status = hoop_cuda_code_get(cuda, &exec->code);
    if (status == HOOP_OK)
        exec->held = hoop_cuda_code_hold(cuda, lanes);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_create(cuda, true, &exec->uploads);
    if (status == HOOP_OK)
        status = hoop_cuda_event_create(cuda, &exec->ended);
    if (status == HOOP_OK)
        status = make_tables(exec);
    if (status == HOOP_OK)
        status = hoop_cuda_bring_new(&exec->bring, cuda, BRING_LEAST);
    if (status != HOOP_OK) {
        hoop_cuda_exec_free(exec);
        return status;
    }
    *made = exec;
    return HOOP_OK;
}

void hoop_cuda_exec_free(struct hoop_cuda_exec *exec)
{
    if (exec == NULL)
        return;
    for (size_t i = 0; i < exec->blocks; i++)
        hoop_cuda_free(exec->cuda, exec->block[i]);
    hoop_cuda_bring_free(exec->bring);
    if (exec->report)
        hoop_cuda_host_free(exec->cuda, exec->report);
    if (exec->ended)
        hoop_cuda_event_destroy(exec->cuda, exec->ended);
    if (exec->uploads)
        hoop_cuda_stream_destroy(exec->cuda, exec->uploads);
    if (exec->code) {
        hoop_cuda_code_let(exec->cuda, exec->held);
        hoop_cuda_code_drop(exec->cuda);
    }
    hoop_free(exec->block);
    hoop_free(exec->program);
    hoop_free(exec->connected);
    hoop_free(exec);
}

int hoop_cuda_exec_lanes(const struct hoop_cuda_exec *exec)
{
    return exec->held;
}

void hoop_cuda_exec_set_lanes(struct hoop_cuda_exec *exec, int lanes)
{
    if (lanes >= exec->held)
        return;
    hoop_cuda_code_let(exec->cuda, exec->held - lanes);
    exec->held = lanes;
}

enum hoop_status hoop_cuda_exec_connect(struct hoop_cuda_exec *exec, int peer, int lane,
                                        const struct hoop_device_link *link)
{
    const size_t place = (size_t)peer * (size_t)exec->pipe_lanes + (size_t)lane;
    const struct hoop_device_pipe pipe = hoop_program_pipe(link);

    if (peer < 0 || peer >= exec->ranks || lane < 0 || lane >= exec->pipe_lanes)
        return hoop_fail(HOOP_ERR_ARG, "link to rank %d, lane %d: there are %d ranks and %d lanes", peer, lane,
                         exec->ranks, exec->pipe_lanes);
    if (link->frame % 16 || link->slots < 2)
        return hoop_fail(
            HOOP_ERR_ARG,
            "link to rank %d, lane %d: %u slots of %u bytes; a kernel needs 2 or more, of a multiple of 16", peer, lane,
            link->slots, link->frame);
    const enum hoop_status status = put(exec, exec->pipes + place * sizeof pipe, &pipe, sizeof pipe);
    exec->connected[place] |= status == HOOP_OK;
    return status;
}

void hoop_cuda_exec_join(struct hoop_cuda_exec *exec, struct hoop_cuda_team *team, int seat, struct hoop_wait *wait)
{
    exec->team = team;
    exec->seat = seat;
    exec->wait = wait;
}

bool hoop_cuda_exec_connected(const struct hoop_cuda_exec *exec, int peer, int lane)
{
    return exec->connected[(size_t)peer * (size_t)exec->pipe_lanes + (size_t)lane];
}

/* ---- programs ---- */

/* Room for a program in device memory. */
static enum hoop_status find_room(struct hoop_cuda_exec *exec, size_t bytes, uint64_t *address)
{
    const uint64_t whole = (bytes + 63) / 64 * 64;

    if (exec->free_end - exec->free_at < whole) {
        const uint64_t block = whole > PROGRAM_BLOCK ? whole : PROGRAM_BLOCK;
        hoop_cu_address at;
        const enum hoop_status status = take_block(exec, block, &at);
        if (status != HOOP_OK)
            return status;
        exec->free_at = at;
        exec->free_end = at + block;
    }
    *address = exec->free_at;
    exec->free_at += whole;
    return HOOP_OK;
}

static enum hoop_status upload(struct hoop_cuda_exec *exec, const struct hoop_plan *plan, uint64_t *address)
{
    const size_t bytes = hoop_program_bytes(plan);
    void *memory = hoop_calloc(1, bytes);

    if (memory == NULL)
        return HOOP_ERR_MEMORY;
    enum hoop_status status = find_room(exec, bytes, address);
    if (status == HOOP_OK)
        status = hoop_program_write(plan, *address, memory);
    if (status == HOOP_OK)
        status = put(exec, *address, memory, bytes);
    hoop_free(memory);
    return status;
}

/* The place of the plan's program in a hash table with linear probing, at most half full, or of the gap where it belongs. */
static struct program *place_of(struct program *table, size_t room, const struct hoop_plan *plan)
{
    size_t i = (size_t)(((uintptr_t)plan >> 4) * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

    while (table[i].plan && table[i].plan != plan)
        i = (i + 1) & (room - 1);
    return &table[i];
}

static enum hoop_status grow_programs(struct hoop_cuda_exec *exec)
{
    const size_t room = exec->program_room ? 2 * exec->program_room : 32;
    struct program *more = hoop_calloc(room, sizeof *more);

    if (more == NULL)
        return HOOP_ERR_MEMORY;
    for (size_t i = 0; i < exec->program_room; i++)
        if (exec->program[i].plan)
            *place_of(more, room, exec->program[i].plan) = exec->program[i];
    hoop_free(exec->program);
    exec->program = more;
    exec->program_room = room;
    return HOOP_OK;
}

static enum hoop_status program_of(struct hoop_cuda_exec *exec, const struct hoop_plan *plan, uint64_t *address)
{
    enum hoop_status status = 2 * exec->programs >= exec->program_room ? grow_programs(exec) : HOOP_OK;

    if (status != HOOP_OK)
        return status;
    struct program *program = place_of(exec->program, exec->program_room, plan);
    if (program->plan == NULL) {
        status = upload(exec, plan, address);
        if (status != HOOP_OK)
            return status;
        *program = (struct program){plan, *address};
        exec->programs++;
    }
    *address = program->address;
    return HOOP_OK;
}

enum hoop_status hoop_cuda_exec_upload(struct hoop_cuda_exec *exec, const struct hoop_plan *plan)
{
    uint64_t address;

    return program_of(exec, plan, &address);
}

/* ---- launching ---- */

static enum hoop_status launch(struct hoop_cuda_exec *exec, hoop_cu_function function, int blocks, int threads,
                               void *argument, hoop_cu_stream stream)
{
    void *arguments[] = {argument};
    enum hoop_status status = hoop_cuda_enter(exec->cuda);

    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(exec->cuda->driver->cuLaunchKernel(function, (unsigned)blocks, 1, 1, (unsigned)threads, 1,
                                                                1, 0, stream, arguments, NULL),
                             "cuLaunchKernel", exec->cuda->device.ordinal);
    hoop_cuda_leave(exec->cuda);
    return status;
}

/* Launches share the counters of the links, so one follows the last one, on whatever stream that was: that the handle is the same
 * means little, since it may be of another thread's default stream, or of a new stream in the place of one that is gone. What is captured has no such order with
 * what is not: who replays a graph gives it to a stream that comes behind. */
enum hoop_status hoop_cuda_exec_follow(struct hoop_cuda_exec *exec, hoop_cu_stream stream)
{
    bool capturing;

    const enum hoop_status status = hoop_cuda_stream_capturing(exec->cuda, stream, &capturing);
    if (status != HOOP_OK || capturing || !exec->launched)
        return status;
    return hoop_cuda_stream_wait_event(exec->cuda, stream, exec->ended);
}

enum hoop_status hoop_cuda_exec_lead(struct hoop_cuda_exec *exec, hoop_cu_stream stream)
{
    bool capturing;

    enum hoop_status status = hoop_cuda_stream_capturing(exec->cuda, stream, &capturing);
    if (status == HOOP_OK && !capturing) {
        status = hoop_cuda_event_record(exec->cuda, exec->ended, stream);
        exec->launched = true;
    }
    return status;
}

/* Threads that a piece of so many bytes keeps busy, in whole warps. */
static int threads_for(const struct hoop_cuda_exec *exec, size_t bytes)
{
    const size_t units = (bytes + 15) / 16, warps = (units + WARP - 1) / WARP;
    const size_t threads = warps > 0 ? warps * WARP : WARP;

    return threads < (size_t)exec->code->threads ? (int)threads : exec->code->threads;
}

/* Blocks of different sizes: launches follow each other, so all use one table. */
static enum hoop_status bring_blocks(struct hoop_cuda_exec *exec, const struct hoop_binding *binding,
                                     struct hoop_device_call *argument, hoop_cu_stream stream)
{
    const size_t bytes = 2 * (size_t)exec->ranks * sizeof(struct hoop_device_block);
    struct hoop_device_block *block = hoop_calloc(1, bytes);

    if (block == NULL)
        return HOOP_ERR_MEMORY;
    hoop_program_blocks(binding, exec->ranks, block);
    argument->blocks = exec->blocks_at;
    const enum hoop_status status = hoop_cuda_bring(exec->bring, exec->blocks_at, block, bytes, stream);
    hoop_free(block);
    return status;
}

/* Behind what launches share and this one brings. */
static enum hoop_status enqueue(struct hoop_cuda_exec *exec, struct hoop_device_call *argument, size_t piece,
                                hoop_cu_stream stream)
{
    const int threads = threads_for(exec, piece);
    const enum hoop_status status =
        exec->team ? hoop_cuda_team_launch(exec->team, exec->seat, argument, threads, stream, exec->wait)
                   : launch(exec, exec->code->interpret, (int)argument->lanes, threads, argument, stream);

    return status == HOOP_OK ? hoop_cuda_exec_lead(exec, stream) : status;
}

/* What all launches have. */
static struct hoop_device_call argument_of(const struct hoop_cuda_exec *exec, uint64_t tag, uint64_t number)
{
    return (struct hoop_device_call){.pipe = exec->pipes,
                                     .state = exec->states,
                                     .report = exec->report_address,
                                     .tag = tag,
                                     .number = number,
                                     .lend = LEND_LEAST,
                                     .views = exec->views,
                                     .ranks = (uint32_t)exec->ranks,
                                     .pipe_lanes = (uint32_t)exec->pipe_lanes,
                                     .state_lanes = (uint32_t)exec->lanes};
}

enum hoop_status hoop_cuda_exec_launch(struct hoop_cuda_exec *exec, const struct hoop_cuda_call *call,
                                       hoop_cu_stream stream)
{
    struct hoop_device_call argument = argument_of(exec, call->tag, call->number);

    if ((int)call->plan->lanes > hoop_cuda_exec_lanes(exec))
        return hoop_fail(
            HOOP_ERR_UNSUPPORTED, "plan %s has %u lanes, but device %d holds %d at once: set HOOP_CHANNELS to fewer",
            call->plan->algo->name, call->plan->lanes, exec->cuda->device.ordinal, hoop_cuda_exec_lanes(exec));
    hoop_program_bind(&argument, call->plan, call->binding, call->type, call->op, HOOP_DEVICE_SMALL);
    argument.flags |= (call->keep_in ? HOOP_DEVICE_KEEP_IN : 0) | (call->keep_out ? HOOP_DEVICE_KEEP_OUT : 0);
    argument.in = call->in;
    argument.out = call->out;
    argument.tmp = call->tmp;
    argument.in_view = call->in_view;
    argument.out_view = call->out_view;
    enum hoop_status status = program_of(exec, call->plan, &argument.lane);
    if (status == HOOP_OK)
        status = hoop_cuda_exec_follow(exec, stream);
    if (status == HOOP_OK && call->binding->in_blocks)
        status = bring_blocks(exec, call->binding, &argument, stream);
    return status == HOOP_OK ? enqueue(exec, &argument, call->binding->piece * call->binding->element, stream) : status;
}

/* ---- messages ---- */

/* The list, and behind it what the kernel notes of it. Launches follow each other, so all use one place. */
static enum hoop_status bring_messages(struct hoop_cuda_exec *exec, const struct hoop_cuda_messages *messages,
                                       struct hoop_device_call *argument, hoop_cu_stream stream)
{
    const size_t queues = hoop_program_queues(messages->message, messages->messages),
                 bytes = hoop_program_messages_bytes(messages->messages, queues),
                 notes = queues * (size_t)messages->parts * sizeof(struct hoop_device_progress);
    hoop_cu_address place;

    enum hoop_status status = hoop_cuda_exec_scratch(exec, HOOP_CUDA_MESSAGES, bytes + notes, &place);
    if (status != HOOP_OK)
        return status;
    void *memory = hoop_calloc(1, bytes);
    if (memory == NULL)
        return HOOP_ERR_MEMORY;
    argument->lane = place;
    hoop_program_messages(messages->message, messages->messages, messages->parts, place, memory);
    status = hoop_cuda_exec_follow(exec, stream);
    if (status == HOOP_OK)
        status = hoop_cuda_bring(exec->bring, place, memory, bytes, stream);
    hoop_free(memory);
    return status;
}

enum hoop_status hoop_cuda_exec_messages(struct hoop_cuda_exec *exec, const struct hoop_cuda_messages *messages,
                                         hoop_cu_stream stream)
{
    const uint64_t most = hoop_program_largest(messages->message, messages->messages);
    struct hoop_device_call argument = argument_of(exec, messages->tag, messages->number);

    argument.flags = HOOP_DEVICE_MESSAGES;
    argument.element = 1;
    argument.type = HOOP_U8;
    argument.op = HOOP_SUM;
    argument.first_lane = messages->ordered ? 0 : (uint32_t)exec->lanes;
    argument.lanes = hoop_program_parts(most, (uint32_t)messages->parts);
    if ((int)argument.lanes > exec->held)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "messages take %u blocks, but device %d holds %d at once",
                         argument.lanes, exec->cuda->device.ordinal, exec->held);
    const enum hoop_status status = bring_messages(exec, messages, &argument, stream);
    return status == HOOP_OK ? enqueue(exec, &argument, most, stream) : status;
}

enum hoop_status hoop_cuda_exec_view(struct hoop_cuda_exec *exec, int row, const uint64_t *shift, hoop_cu_stream stream)
{
    const size_t bytes = (size_t)exec->ranks * sizeof *shift;

    return hoop_cuda_bring(exec->bring, exec->views + (uint64_t)row * bytes, shift, bytes, stream);
}

uint64_t hoop_cuda_exec_lent(const struct hoop_cuda_exec *exec)
{
    uint64_t lent = 0;

    for (int l = 0; l < HOOP_DEVICE_LANES; l++)
        lent += __atomic_load_n(&exec->report->lent[l], __ATOMIC_ACQUIRE);
    return lent;
}

/* Blocks for so much work, if `most` keep the device busy. */
static int blocks_for(const struct hoop_cuda_exec *exec, uint64_t work, int most)
{
    const uint64_t useful = work / (uint64_t)exec->code->vector_threads + 1;

    return useful < (uint64_t)most ? (int)useful : most;
}

static enum hoop_status launch_bare(struct hoop_cuda_exec *exec, const struct hoop_device_vector *vector, int most,
                                    hoop_cu_stream stream)
{
    struct hoop_device_call argument = {.in = vector->left,
                                        .out = vector->to,
                                        .tmp = vector->right,
                                        .count = vector->count,
                                        .type = vector->type,
                                        .op = vector->op == HOOP_AVG ? HOOP_SUM : vector->op,
                                        .element = (uint32_t)hoop_type_size((enum hoop_type)vector->type),
                                        .flags = HOOP_DEVICE_BARE};

    return launch(exec, exec->code->interpret, blocks_for(exec, vector->count / 16 + 2, most),
                  exec->code->vector_threads, &argument, stream);
}

enum hoop_status hoop_cuda_exec_vector(struct hoop_cuda_exec *exec, enum hoop_cuda_vector what,
                                       const struct hoop_device_vector *vector, int blocks, hoop_cu_stream stream)
{
    struct hoop_device_vector argument = *vector;
    const int most = blocks > 0 ? blocks : 2 * exec->cuda->device.multiprocessors;

    if (what == HOOP_CUDA_REDUCE)
        return launch_bare(exec, vector, most, stream);
    return launch(exec, exec->code->vector[what], blocks_for(exec, vector->count, most), exec->code->vector_threads,
                  &argument, stream);
}

/* ---- reports ---- */

void hoop_cuda_exec_abort(struct hoop_cuda_exec *exec)
{
    __atomic_store_n(&exec->report->abort, 1, __ATOMIC_RELEASE);
}

const struct hoop_device_report *hoop_cuda_exec_report(const struct hoop_cuda_exec *exec)
{
    return exec->report;
}
