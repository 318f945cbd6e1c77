// SPDX-License-Identifier: BSD-3-Clause
/* Registered memory: content and address stay, another view of the board sees it in place, the table finds exactly it, and it
 * becomes ordinary again; what cannot be registered is refused and stays as it was. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "harness.h"
#include "mem/registry.h"
#include "tsan.h"

enum { PAGE = 4096, MIB = 1 << 20 };

static const struct hoop_board_shape shape = {.ranks = 2, .lanes = 1, .ring = 8192, .flat = 100, .heap = 8 * MIB};

/* A rank's view with its heap, and the view of another rank, as of another process: a mapping of its own. */
struct fixture {
    struct hoop_board *board;
    struct hoop_heap *heap;
    const unsigned char *other;
};

static struct fixture set_up(void)
{
    struct fixture f = {NULL, NULL, NULL};

    ck_assert_int_eq(hoop_board_create(&f.board, &shape, 1), HOOP_OK);
    ck_assert_int_eq(hoop_heap_new(&f.heap, f.board), HOOP_OK);
    f.other = mmap(NULL, f.board->size, PROT_READ, MAP_SHARED, f.board->descriptor, 0);
    ck_assert_ptr_ne(f.other, MAP_FAILED);
    return f;
}

static void tear_down(struct fixture *f)
{
    hoop_registry_clear(f->heap);
    hoop_heap_free(f->heap);
    munmap((void *)(uintptr_t)f->other, f->board->size);
    hoop_board_close(f->board);
}

static unsigned char *map(size_t bytes, int access, int flags)
{
    unsigned char *memory = mmap(NULL, bytes, access, flags | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    return memory;
}

static void fill(unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 7 + i / 256 + seed);
}

static bool holds(const unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(i * 7 + i / 256 + seed))
            return false;
    return true;
}

#define REFUSED(call, status, words)                                                                         \
    do {                                                                                                     \
        ck_assert_int_eq(call, status);                                                                      \
        ck_assert_msg(strstr(hoop_last_error(NULL), words) != NULL, "%s: %s", #call, hoop_last_error(NULL)); \
    } while (0)

/* Every pair of odd ends: the whole pages between them, and only they, are on the board. */
START_TEST(in_and_out)
{
    static const size_t ends[] = {0, 1, 16, 4095, 4096, 4097, 8192, 12289, 40000};
    struct fixture f = set_up();
    unsigned char *memory = map(64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    size_t offset = 0;

    for (size_t i = 0; i < 9; i++)
        for (size_t j = 0; j < 9; j++) {
            unsigned char *const from = memory + 2 * PAGE + ends[i];
            const size_t bytes = ends[j] + 1, unshared = (size_t)(-(uintptr_t)from % PAGE);
            const size_t pages = bytes > unshared ? (bytes - unshared) / PAGE : 0;

            fill(memory, 64 * PAGE, (unsigned)(i + j));
            ck_assert_msg(hoop_registry_add(f.heap, from, bytes) == HOOP_OK, "%s", hoop_last_error(NULL));
            ck_assert(holds(memory, 64 * PAGE, (unsigned)(i + j)));
            ck_assert(!hoop_board_owns(f.board, memory, PAGE, &offset));
            if (pages > 0) {
                ck_assert(hoop_board_owns(f.board, from + unshared, pages * PAGE, &offset));
                ck_assert(memcmp(f.other + offset, from + unshared, pages * PAGE) == 0);
                from[unshared] ^= 0x55; /* both ways */
                ck_assert_int_eq(f.other[offset], from[unshared]);
                ck_assert_int_eq(f.board->base[offset], from[unshared]);
                f.board->base[offset] ^= 0x55;
            }
            ck_assert(!hoop_board_owns(f.board, from + unshared, pages * PAGE + 1, &offset));
            if (unshared > 0)
                ck_assert(!hoop_board_owns(f.board, from + unshared - 1, 1, &offset));
            const size_t was = pages > 0 && hoop_board_owns(f.board, from + unshared, 1, &offset) ? offset : 0;
            ck_assert_int_eq(hoop_registry_remove(f.heap, from), HOOP_OK);
            ck_assert(holds(memory, 64 * PAGE, (unsigned)(i + j)));
            ck_assert(!hoop_board_owns(f.board, from + unshared, 1, &offset));
            for (size_t byte = 0; was && byte < pages * PAGE; byte++)
                ck_assert_int_eq(f.other[was + byte], 0); /* what a late reader gets */
            REFUSED(hoop_registry_remove(f.heap, from), HOOP_ERR_ARG, "no registration");
        }
    munmap(memory, 64 * PAGE);
    tear_down(&f);
}
END_TEST

/* Random registering and deregistering of many ranges: the table answers as a plain list does. */
START_TEST(table)
{
    enum { SLOTS = 100, SPAN = 5 * PAGE, TURNS = 3000 };
    struct fixture f = set_up();
    unsigned char *memory = map(SLOTS * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    size_t begin[SLOTS], bytes[SLOTS] = {0}, offset;
    unsigned seed = 1;
    int held = 0, full = 0;

    fill(memory, SLOTS * SPAN, 9);
    for (int turn = 0; turn < TURNS; turn++) {
        const int i = (int)((seed = seed * 1103515245 + 12345) >> 16) % SLOTS;
        if (bytes[i] && seed >> 8 & 3) /* so that the table fills up */
            continue;
        if (bytes[i]) {
            ck_assert_int_eq(hoop_registry_remove(f.heap, memory + begin[i]), HOOP_OK);
            bytes[i] = 0;
            held--;
        } else {
            const size_t from = (seed = seed * 1103515245 + 12345) / 7 % SPAN,
                         size = 1 + (seed = seed * 1103515245 + 12345) / 7 % (SPAN - from);
            const enum hoop_status status = hoop_registry_add(f.heap, memory + (size_t)i * SPAN + from, size);
            if (held == HOOP_REGISTRATIONS) {
                ck_assert_int_eq(status, HOOP_ERR_ARG);
                full++;
                continue;
            }
            ck_assert_msg(status == HOOP_OK, "%s", hoop_last_error(NULL));
            begin[i] = (size_t)i * SPAN + from;
            bytes[i] = size;
            held++;
        }
        for (int k = 0; k < SLOTS; k++) {
            const uintptr_t from = (uintptr_t)memory + begin[k], up = (from + PAGE - 1) / PAGE * PAGE,
                            down = (from + bytes[k]) / PAGE * PAGE;
            const size_t at = (size_t)(seed >> 3) % SPAN;
            const uintptr_t probe = (uintptr_t)memory + (size_t)k * SPAN + at;
            const bool inside = bytes[k] > 0 && probe >= up && probe < down;
            ck_assert_int_eq(hoop_board_owns(f.board, (void *)probe, 1, &offset), inside);
            if (inside)
                ck_assert_int_eq(f.other[offset], *(unsigned char *)probe);
        }
    }
    ck_assert_int_gt(full, 0);
    ck_assert(holds(memory, SLOTS * SPAN, 9));
    hoop_registry_clear(f.heap);
    ck_assert_int_eq(f.board->registrations, 0);
    ck_assert(holds(memory, SLOTS * SPAN, 9));
    munmap(memory, SLOTS * SPAN);
    tear_down(&f);
}
END_TEST

START_TEST(overlaps)
{
    struct fixture f = set_up(), g = set_up();
    unsigned char *memory = map(16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    void *shared = NULL;

    fill(memory, 16 * PAGE, 3);
    ck_assert_int_eq(hoop_registry_add(f.heap, memory + 4 * PAGE + 100, 4 * PAGE), HOOP_OK);
    REFUSED(hoop_registry_add(f.heap, memory + 4 * PAGE + 100, 4 * PAGE), HOOP_ERR_ARG, "overlap");
    REFUSED(hoop_registry_add(f.heap, memory + 6 * PAGE, 10), HOOP_ERR_ARG, "overlap");
    REFUSED(hoop_registry_add(f.heap, memory, 4 * PAGE + 101), HOOP_ERR_ARG, "overlap");
    REFUSED(hoop_registry_add(f.heap, memory + 8 * PAGE + 99, 1), HOOP_ERR_ARG, "overlap");
    REFUSED(hoop_registry_add(f.heap, memory, 16 * PAGE), HOOP_ERR_ARG, "overlap");
    REFUSED(hoop_registry_add(g.heap, memory, 16 * PAGE), HOOP_ERR_ARG, "registered already"); /* with another board */
    ck_assert_int_eq(hoop_registry_add(f.heap, memory, 4 * PAGE + 100), HOOP_OK);              /* neighbours */
    ck_assert_int_eq(hoop_registry_add(f.heap, memory + 8 * PAGE + 100, 7 * PAGE), HOOP_OK);
    ck_assert_int_eq(hoop_heap_take(f.heap, 3 * PAGE, &shared), HOOP_OK);
    REFUSED(hoop_registry_add(f.heap, shared, PAGE), HOOP_ERR_ARG, "hoop_mem_alloc");
    REFUSED(hoop_registry_add(g.heap, shared, PAGE), HOOP_ERR_ARG, "hoop_mem_alloc");
    ck_assert(holds(memory, 16 * PAGE, 3));
    tear_down(&g);
    tear_down(&f);
    ck_assert(holds(memory, 16 * PAGE, 3));
    munmap(memory, 16 * PAGE);
}
END_TEST

START_TEST(other_kinds)
{
    struct fixture f = set_up();
    unsigned char *memory = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    unsigned char *common = map(2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    unsigned char *program = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    unsigned char on_stack[3 * PAGE];

    ck_assert_ptr_ne(program, MAP_FAILED);
    REFUSED(hoop_registry_add(f.heap, common, 2 * PAGE), HOOP_ERR_UNSUPPORTED, "shared with other");
    REFUSED(hoop_registry_add(f.heap, program, 2 * PAGE), HOOP_ERR_UNSUPPORTED, "from a file");
    ck_assert_int_eq(mprotect(memory + 6 * PAGE, PAGE, PROT_READ), 0);
    REFUSED(hoop_registry_add(f.heap, memory + 4 * PAGE, 4 * PAGE), HOOP_ERR_UNSUPPORTED, "read and written");
    ck_assert_int_eq(mprotect(memory + 6 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    REFUSED(hoop_registry_add(f.heap, memory + 4 * PAGE, 4 * PAGE), HOOP_ERR_UNSUPPORTED, "executed");
    munmap(memory + 6 * PAGE, PAGE);
    REFUSED(hoop_registry_add(f.heap, memory + 4 * PAGE, 4 * PAGE), HOOP_ERR_ARG, "no memory is mapped");
    REFUSED(hoop_registry_add(f.heap, memory + 5 * PAGE, PAGE + 1), HOOP_ERR_ARG, "no memory is mapped");
    REFUSED(hoop_registry_add(f.heap, memory + 6 * PAGE, PAGE), HOOP_ERR_ARG, "no memory is mapped");
    if (!UNDER_ASAN && !UNDER_TSAN)
        REFUSED(hoop_registry_add(f.heap, on_stack, sizeof on_stack), HOOP_ERR_UNSUPPORTED, "serves the process");
    ck_assert_int_eq(hoop_registry_add(f.heap, memory, 6 * PAGE), HOOP_OK);
    ck_assert_int_eq(f.board->registrations, 1);
    close(file);
    tear_down(&f);
    munmap(memory, 8 * PAGE);
    munmap(common, 2 * PAGE);
    munmap(program, 2 * PAGE);
}
END_TEST

/* malloc's large and small blocks, and static memory. */
START_TEST(usual_memory)
{
    static unsigned char fixed[5 * PAGE];
    struct fixture f = set_up();
    unsigned char *large = malloc(MIB), *small = malloc(20000), *block[3] = {large, small, fixed};
    const size_t bytes[3] = {MIB, 20000, sizeof fixed};

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            fill(block[i], bytes[i], (unsigned)i);
            ck_assert_msg(hoop_registry_add(f.heap, block[i], bytes[i]) == HOOP_OK, "%d: %s", i, hoop_last_error(NULL));
        }
        free(malloc(3 * MIB));
        for (int i = 0; i < 3; i++) {
            ck_assert(holds(block[i], bytes[i], (unsigned)i));
            ck_assert_int_eq(hoop_registry_remove(f.heap, block[i]), HOOP_OK);
            ck_assert(holds(block[i], bytes[i], (unsigned)i));
        }
    }
    free(large);
    free(small);
    tear_down(&f);
}
END_TEST

/* While it is registered a forked child shares it, afterwards no more. */
START_TEST(forked_children)
{
    struct fixture f = set_up();
    unsigned char *memory = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    int status;

    for (int registered = 1; registered >= 0; registered--) {
        memory[PAGE] = 1;
        if (registered)
            ck_assert_int_eq(hoop_registry_add(f.heap, memory, 4 * PAGE), HOOP_OK);
        const pid_t child = fork();
        if (child == 0) {
            const bool same = memory[PAGE] == 1;
            memory[PAGE] = 2;
            _exit(same ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(memory[PAGE], registered ? 2 : 1);
        if (registered)
            ck_assert_int_eq(hoop_registry_remove(f.heap, memory), HOOP_OK);
    }
    munmap(memory, 4 * PAGE);
    tear_down(&f);
}
END_TEST

/* No room in the heap, no memory for the list, no address space: nothing has happened, and it works once there is. */
START_TEST(no_room)
{
    struct fixture f = set_up();
    unsigned char *memory = map(16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    struct rlimit limit, tight = {MIB, MIB};

    fill(memory, 16 * MIB, 5);
    REFUSED(hoop_registry_add(f.heap, memory, 16 * MIB), HOOP_ERR_MEMORY, "Raise HOOP_HEAP");
    REFUSED(hoop_registry_add(f.heap, memory, 16 * MIB), HOOP_ERR_MEMORY, "hoop_register");
    hoop_alloc_fail_at(1);
    ck_assert_int_eq(hoop_registry_add(f.heap, memory, 4 * MIB), HOOP_ERR_MEMORY);
    hoop_alloc_fail_at(0);
    if (!UNDER_ASAN && !UNDER_TSAN) {
        free(malloc(65536)); /* for the C library */
        getrlimit(RLIMIT_AS, &limit);
        tight.rlim_max = limit.rlim_max;
        setrlimit(RLIMIT_AS, &tight);
        const enum hoop_status in = hoop_registry_add(f.heap, memory, 4 * MIB);
        setrlimit(RLIMIT_AS, &limit);
        ck_assert_msg(in == HOOP_ERR_MEMORY, "%d: %s", in, hoop_last_error(NULL));
        ck_assert_int_eq(f.board->registrations, 0);
        ck_assert(holds(memory, 16 * MIB, 5));
        ck_assert_int_eq(hoop_registry_add(f.heap, memory, 7 * MIB), HOOP_OK);
        setrlimit(RLIMIT_AS, &tight);
        const enum hoop_status out = hoop_registry_remove(f.heap, memory);
        setrlimit(RLIMIT_AS, &limit);
        ck_assert_int_eq(out, HOOP_ERR_MEMORY);
        ck_assert_int_eq(f.board->registrations, 1);
        ck_assert_int_eq(hoop_registry_remove(f.heap, memory), HOOP_OK);
    }
    ck_assert_int_eq(hoop_registry_add(f.heap, memory, 7 * MIB), HOOP_OK);
    ck_assert(holds(memory, 16 * MIB, 5));
    tear_down(&f);
    ck_assert(holds(memory, 16 * MIB, 5));
    munmap(memory, 16 * MIB);
}
END_TEST

/* The end of the board while there is no address space: the memory keeps the board's pages, and its content. */
START_TEST(no_room_at_the_end)
{
    struct fixture f = set_up();
    unsigned char *memory = map(4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    struct rlimit limit, tight = {MIB, MIB};

    fill(memory, 4 * MIB, 6);
    ck_assert_int_eq(hoop_registry_add(f.heap, memory + 1, 4 * MIB - 1), HOOP_OK);
    free(malloc(65536));
    getrlimit(RLIMIT_AS, &limit);
    tight.rlim_max = limit.rlim_max;
    setrlimit(RLIMIT_AS, &tight);
    hoop_registry_clear(f.heap);
    setrlimit(RLIMIT_AS, &limit);
    ck_assert_int_eq(f.board->registrations, 0);
    tear_down(&f);
    ck_assert(holds(memory, 4 * MIB, 6));
    munmap(memory, 4 * MIB);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registered memory");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, in_and_out);
    tcase_add_test(tests, table);
    tcase_add_test(tests, overlaps);
    tcase_add_test(tests, other_kinds);
    tcase_add_test(tests, usual_memory);
    if (!UNDER_TSAN)
        tcase_add_test(tests, forked_children);
    tcase_add_test(tests, no_room);
    if (!UNDER_ASAN && !UNDER_TSAN)
        tcase_add_test(tests, no_room_at_the_end);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
