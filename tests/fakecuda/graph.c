// SPDX-License-Identifier: BSD-3-Clause
/* Captures and graphs.
 *
 * A graph is the list of what was given to the captured streams, each with the number of its branch: 0 is the stream whose capture
 * was begun, others joined it by waiting for an event. A launch gives copies of the same operations to the launching stream and to
 * streams of the graph's own, with fences of their own.
 */
#include <stdlib.h>

#include "tests/fakecuda/queue.h"

enum { BRANCHES = 16 };

struct node {
    struct fake_operation *operation;
    int branch, record; /* of a wait: the node that it waits for */
};

struct fake_graph {
    struct node *nodes;
    int count, branches;
    struct fake_context *contexts[BRANCHES];
};

struct fake_capture {
    struct fake_graph *graph;
    struct fake_stream *streams[BRANCHES];
    bool joined[BRANCHES]; /* nothing after the branch's last join */
    int mode, branches;
    uint64_t id;
    pthread_t owner;
    bool broken;
    struct fake_capture *next;
};

struct fake_graph_exec {
    struct fake_graph *graph;
    struct fake_stream *streams[BRANCHES];
    struct fake_fence *last;
};

static struct fake_capture *captures;

static int append(struct fake_graph *graph, struct fake_operation *operation, int branch, int record)
{
    struct node *more = realloc(graph->nodes, (size_t)(graph->count + 1) * sizeof *more);

    if (!more)
        abort();
    graph->nodes = more;
    more[graph->count] = (struct node){operation, branch, record};
    return graph->count++;
}

static void free_graph(struct fake_graph *graph)
{
    for (int i = 0; i < graph->count; i++)
        fake_operation_free(graph->nodes[i].operation);
    free(graph->nodes);
    free(graph);
}

/* A call that the capture forbids: the capture is lost, which its end tells. */
void fake_capture_break(struct fake_capture *capture)
{
    capture->broken = true;
}

bool fake_capture_forbids(void)
{
    bool forbids = false;

    if (fake_thread.capture_mode == FAKE_CAPTURE_RELAXED)
        return false;
    fake_lock();
    for (const struct fake_capture *capture = captures; capture; capture = capture->next) {
        if (capture->mode == FAKE_CAPTURE_RELAXED)
            continue;
        if (pthread_equal(capture->owner, pthread_self()) ||
            (capture->mode == FAKE_CAPTURE_GLOBAL && fake_thread.capture_mode == FAKE_CAPTURE_GLOBAL))
            forbids = true;
    }
    fake_unlock();
    return forbids;
}

void fake_capture_spoil(void)
{
    fake_lock();
    for (struct fake_capture *capture = captures; capture; capture = capture->next)
        if (capture->mode == FAKE_CAPTURE_GLOBAL || pthread_equal(capture->owner, pthread_self()))
            capture->broken = true;
    fake_unlock();
}

int fake_capture_add(struct fake_stream *stream, struct fake_operation *operation)
{
    struct fake_capture *capture = stream->capture;

    if (capture->broken) {
        fake_operation_free(operation);
        return STREAM_CAPTURE_INVALIDATED;
    }
    capture->joined[stream->branch] = false;
    append(capture->graph, operation, stream->branch, -1);
    return OK;
}

/* The fence of a record in a capture stands for the node that the record will be. */
int fake_capture_record(struct fake_stream *stream, struct fake_fence **fence)
{
    (*fence)->node = stream->capture->graph->count;
    (*fence)->capture = stream->capture;
    return OK;
}

static int join_capture(struct fake_stream *stream, struct fake_capture *capture)
{
    if (capture->branches == BRANCHES)
        return STREAM_CAPTURE_UNSUPPORTED;
    stream->capture = capture;
    stream->branch = capture->branches;
    capture->streams[capture->branches] = stream;
    capture->graph->contexts[capture->branches] = stream->context;
    capture->graph->branches = ++capture->branches;
    return OK;
}

int fake_capture_wait(struct fake_stream *stream, struct fake_fence *fence)
{
    struct fake_operation *wait;
    struct fake_capture *capture = NULL;
    int status;

    for (struct fake_capture *each = captures; each; each = each->next)
        if (fence->node >= 0 && each == fence->capture)
            capture = each;
    if (fence->node < 0) { /* recorded outside */
        fake_capture_break(stream->capture);
        return STREAM_CAPTURE_ISOLATION;
    }
    if (!capture)
        return INVALID_VALUE;
    if (stream->capture && stream->capture != capture) {
        fake_capture_break(capture);
        fake_capture_break(stream->capture);
        return STREAM_CAPTURE_MERGE;
    }
    if (!stream->capture) {
        status = join_capture(stream, capture);
        if (status != OK)
            return status;
    }
    wait = fake_operation_new(FAKE_WAIT, 0);
    append(capture->graph, wait, stream->branch, fence->node);
    capture->joined[stream->branch] = false;
    capture->joined[capture->graph->nodes[fence->node].branch] = true;
    return OK;
}

FAKE_ENTRY(cuStreamBeginCapture_v2, struct fake_stream *handle, int mode)
{
    static uint64_t ids;
    struct fake_stream *stream;
    struct fake_capture *capture;
    int status;

    FAKE_ENTER(cuStreamBeginCapture_v2);
    if (mode < 0 || mode > 2)
        return INVALID_VALUE;
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    if (stream == stream->context->legacy) {
        status = STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream->capture) {
        status = 401; /* illegal state */
    } else {
        capture = calloc(1, sizeof *capture);
        capture->graph = calloc(1, sizeof *capture->graph);
        capture->mode = mode;
        capture->owner = pthread_self();
        capture->id = ++ids;
        capture->next = captures;
        captures = capture;
        status = join_capture(stream, capture);
    }
    fake_unlock();
    return status;
}

static void forget(struct fake_capture *capture)
{
    struct fake_capture **link = &captures;

    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    for (int i = 0; i < capture->branches; i++) {
        capture->streams[i]->capture = NULL;
        capture->streams[i]->branch = -1;
    }
    free(capture);
}

FAKE_ENTRY(cuStreamEndCapture, struct fake_stream *handle, struct fake_graph **graph)
{
    struct fake_stream *stream;
    struct fake_capture *capture;
    int status;

    FAKE_ENTER(cuStreamEndCapture);
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    capture = stream->capture;
    if (!capture) {
        fake_unlock();
        return 401;
    }
    if (stream->branch != 0)
        status = STREAM_CAPTURE_UNMATCHED;
    else if (capture->mode != FAKE_CAPTURE_RELAXED && !pthread_equal(capture->owner, pthread_self()))
        status = STREAM_CAPTURE_WRONG_THREAD;
    else if (capture->broken)
        status = STREAM_CAPTURE_INVALIDATED;
    for (int i = 1; i < capture->branches && status == OK; i++)
        if (!capture->joined[i])
            status = STREAM_CAPTURE_UNJOINED;
    *graph = NULL;
    if (status == OK)
        *graph = capture->graph;
    else if (status == STREAM_CAPTURE_INVALIDATED || status == STREAM_CAPTURE_UNJOINED)
        free_graph(capture->graph);
    if (status != STREAM_CAPTURE_UNMATCHED && status != STREAM_CAPTURE_WRONG_THREAD)
        forget(capture);
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuStreamIsCapturing, struct fake_stream *handle, int *capturing)
{
    struct fake_stream *stream;
    int status;

    FAKE_ENTER(cuStreamIsCapturing);
    status = fake_stream_find(handle, &stream);
    if (status != OK)
        return status;
    *capturing = !stream->capture ? 0 : stream->capture->broken ? 2 : 1;
    if (stream == stream->context->legacy)
        for (const struct fake_stream *other = stream->context->streams; other; other = other->next)
            if (other->capture && !(other->flags & FAKE_STREAM_NON_BLOCKING))
                status = STREAM_CAPTURE_IMPLICIT;
    fake_unlock();
    return status;
}

static int capture_info(struct fake_stream *handle, int *capturing, uint64_t *id, struct fake_graph **graph,
                        size_t *count)
{
    struct fake_stream *stream;
    int status = fake_stream_enter(handle, &stream);

    if (status != OK)
        return status;
    *capturing = !stream->capture ? 0 : stream->capture->broken ? 2 : 1;
    if (id && stream->capture)
        *id = stream->capture->id;
    if (graph && stream->capture)
        *graph = stream->capture->graph;
    if (count)
        *count = 0;
    fake_unlock();
    return OK;
}

FAKE_ENTRY(cuStreamGetCaptureInfo_v2, struct fake_stream *stream, int *capturing, uint64_t *id,
           struct fake_graph **graph, const void **dependencies, size_t *count)
{
    FAKE_ENTER(cuStreamGetCaptureInfo_v2);
    (void)dependencies;
    return capture_info(stream, capturing, id, graph, count);
}

FAKE_ENTRY(cuStreamGetCaptureInfo_v3, struct fake_stream *stream, int *capturing, uint64_t *id,
           struct fake_graph **graph, const void **dependencies, const void **edges, size_t *count)
{
    FAKE_ENTER(cuStreamGetCaptureInfo_v3);
    (void)dependencies, (void)edges;
    return capture_info(stream, capturing, id, graph, count);
}

FAKE_ENTRY(cuThreadExchangeStreamCaptureMode, int *mode)
{
    const int old = fake_thread.capture_mode;

    FAKE_ENTER(cuThreadExchangeStreamCaptureMode);
    if (!mode || *mode < 0 || *mode > 2)
        return INVALID_VALUE;
    fake_thread.capture_mode = *mode;
    *mode = old;
    return OK;
}

FAKE_ENTRY(cuGraphGetNodes, struct fake_graph *graph, void **nodes, size_t *count)
{
    FAKE_ENTER(cuGraphGetNodes);
    (void)nodes;
    if (!graph || !count)
        return INVALID_VALUE;
    *count = 0;
    for (int i = 0; i < graph->count; i++)
        *count += graph->nodes[i].operation->kind != FAKE_RECORD && graph->nodes[i].operation->kind != FAKE_WAIT;
    return OK;
}

static struct fake_graph *copy_graph(const struct fake_graph *graph)
{
    struct fake_graph *copy = calloc(1, sizeof *copy);

    if (!copy)
        abort();
    copy->branches = graph->branches;
    for (int i = 0; i < BRANCHES; i++)
        copy->contexts[i] = graph->contexts[i];
    for (int i = 0; i < graph->count; i++)
        append(copy, fake_operation_copy(graph->nodes[i].operation), graph->nodes[i].branch, graph->nodes[i].record);
    return copy;
}

FAKE_ENTRY(cuGraphInstantiateWithFlags, struct fake_graph_exec **result, struct fake_graph *graph, uint64_t flags)
{
    struct fake_graph_exec *exec;

    FAKE_ENTER(cuGraphInstantiateWithFlags);
    (void)flags;
    if (!result || !graph)
        return INVALID_VALUE;
    exec = calloc(1, sizeof *exec);
    if (!exec)
        return OUT_OF_MEMORY;
    fake_lock();
    exec->graph = copy_graph(graph);
    for (int i = 1; i < graph->branches; i++)
        exec->streams[i] = fake_stream_new(graph->contexts[i], FAKE_STREAM_NON_BLOCKING, 0);
    fake_unlock();
    *result = exec;
    return OK;
}

static void wait_in(struct fake_stream *stream, struct fake_fence *fence)
{
    struct fake_operation *wait = fake_operation_new(FAKE_WAIT, 0);

    wait->fence = fake_fence_keep(fence);
    fake_stream_push(stream, wait);
}

static struct fake_fence *record_in(struct fake_stream *stream)
{
    struct fake_operation *record = fake_operation_new(FAKE_RECORD, 0);
    struct fake_fence *fence = fake_fence_new();

    record->fence = fake_fence_keep(fence);
    fake_stream_push(stream, record); /* from here on the stream's */
    return fence;
}

/* Launches of one graph come one after the other, whatever their streams. */
static void replay(struct fake_graph_exec *exec, struct fake_stream *stream)
{
    struct fake_graph *graph = exec->graph;
    struct fake_fence **fences = calloc((size_t)graph->count + 1, sizeof *fences);

    exec->streams[0] = stream;
    if (exec->last)
        for (int i = 0; i < graph->branches; i++)
            wait_in(exec->streams[i], exec->last);
    for (int i = 0; i < graph->count; i++) {
        const struct node *node = &graph->nodes[i];
        struct fake_stream *target = exec->streams[node->branch];

        if (node->operation->kind == FAKE_RECORD)
            fences[i] = record_in(target);
        else if (node->operation->kind == FAKE_WAIT)
            wait_in(target, fences[node->record]);
        else
            fake_stream_push(target, fake_operation_copy(node->operation));
    }
    for (int i = 0; i < graph->count; i++)
        fake_fence_drop(fences[i]);
    free(fences);
    fake_fence_drop(exec->last);
    exec->last = record_in(stream);
}

FAKE_ENTRY(cuGraphLaunch, struct fake_graph_exec *exec, struct fake_stream *handle)
{
    struct fake_stream *stream;
    int status;

    FAKE_ENTER(cuGraphLaunch);
    if (!exec)
        return INVALID_VALUE;
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    if (stream->capture)
        status = STREAM_CAPTURE_UNSUPPORTED; /* a child graph on a real device; nobody needs it here */
    else
        replay(exec, stream);
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuGraphExecDestroy, struct fake_graph_exec *exec)
{
    FAKE_ENTER(cuGraphExecDestroy);
    if (!exec)
        return INVALID_VALUE;
    fake_lock();
    for (int i = 1; i < exec->graph->branches; i++)
        fake_stream_close(exec->streams[i]);
    fake_fence_drop(exec->last);
    free_graph(exec->graph);
    free(exec);
    fake_unlock();
    return OK;
}

FAKE_ENTRY(cuGraphDestroy, struct fake_graph *graph)
{
    FAKE_ENTER(cuGraphDestroy);
    if (!graph)
        return INVALID_VALUE;
    free_graph(graph);
    return OK;
}
