// SPDX-License-Identifier: BSD-3-Clause
/* What all processes that use the fake share: the bells, and a list of who has opened whose memory.
 *
 * A small file in /dev/shm, one for each user and FAKECUDA_NAME. Each process keeps a shared lock on it; the last to leave
 * removes it. Where there is no /dev/shm each process has bells of its own, and sleepers wake by their time limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

enum { IMPORTS = 4096 };

struct bell {
    _Alignas(64) _Atomic uint32_t count;
    _Atomic uint32_t waiters;
};

struct import {
    _Atomic int32_t opener; /* 0: free */
    _Atomic int32_t owner;
    _Atomic uint64_t id;
};

struct share {
    struct bell bells[FAKE_BELLS];
    struct import imports[IMPORTS];
};

static struct share alone, *share = &alone;
static char path[128];
static int file = -1;

static bool open_file(void)
{
    for (int tries = 0; tries < 100; tries++) {
        struct stat status;

        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0)
            return false;
        if (flock(file, LOCK_SH) == 0 && fstat(file, &status) == 0 && status.st_nlink > 0)
            return ftruncate(file, sizeof(struct share)) == 0;
        close(file); /* removed between the two: once more */
    }
    return false;
}

int fake_share_init(void)
{
    const char *name = getenv("FAKECUDA_NAME");
    void *mapped;

    snprintf(path, sizeof path, "/dev/shm/fakecuda-%u-%.64s", (unsigned)getuid(), name ? name : "all");
    if (!open_file())
        return OK;
    mapped = mmap(NULL, sizeof(struct share), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        share = mapped;
    return OK;
}

void fake_share_end(void)
{
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
}

void fake_ring(int bell)
{
    struct bell *rung = &share->bells[bell], *any = &share->bells[FAKE_BELL_ANY];

    atomic_fetch_add(&rung->count, 1);
    if (atomic_load(&rung->waiters) > 0)
        syscall(SYS_futex, &rung->count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (bell != 0 && rung != any && atomic_load(&any->waiters) > 0)
        fake_ring(FAKE_BELL_ANY);
}

void fake_ring_all(void)
{
    for (int i = 0; i < FAKE_BELLS; i++)
        fake_ring(i);
}

uint32_t fake_bell_note(int bell)
{
    atomic_fetch_add(&share->bells[bell].waiters, 1);
    return atomic_load(&share->bells[bell].count);
}

void fake_bell_sleep(int bell, uint32_t noted, long nanoseconds)
{
    const struct timespec limit = {.tv_nsec = nanoseconds};

    syscall(SYS_futex, &share->bells[bell].count, FUTEX_WAIT, noted, &limit, NULL, 0);
}

void fake_bell_leave(int bell)
{
    atomic_fetch_sub(&share->bells[bell].waiters, 1);
}

/* Pages lie at different addresses in different processes, but a word has the same place in its page. */
int fake_bell_of(uint64_t address)
{
    return address == 0 ? FAKE_BELL_ANY : 1 + (int)((address % 4096 >> 6) % (FAKE_BELL_ANY - 1));
}

void fake_import_note(pid_t owner, uint64_t id, bool open)
{
    for (int i = 0; i < IMPORTS; i++) {
        struct import *import = &share->imports[i];
        int32_t opener = atomic_load(&import->opener);

        if (!open && opener == getpid() && atomic_load(&import->owner) == owner && atomic_load(&import->id) == id) {
            atomic_store(&import->opener, 0);
            return;
        }
        if (open && (opener == 0 || (kill(opener, 0) != 0 && errno == ESRCH)) &&
            atomic_compare_exchange_strong(&import->opener, &opener, getpid())) {
            atomic_store(&import->owner, owner);
            atomic_store(&import->id, id);
            return;
        }
    }
}

/* What is left of a process that has died, until its parent looks, has nothing open. */
static bool lives(pid_t process)
{
    char name[64], state = 'Z';

    snprintf(name, sizeof name, "/proc/%ld/stat", (long)process);
    FILE *facts = fopen(name, "re");
    if (facts && fscanf(facts, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    if (facts)
        fclose(facts);
    return state != 'Z' && state != 'X';
}

int fake_import_count(pid_t owner, uint64_t id)
{
    int found = 0;

    for (int i = 0; i < IMPORTS; i++) {
        const struct import *import = &share->imports[i];
        const int32_t opener = atomic_load(&import->opener);

        if (opener && atomic_load(&import->owner) == owner && atomic_load(&import->id) == id)
            found += lives(opener);
    }
    return found;
}
