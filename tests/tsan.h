// SPDX-License-Identifier: BSD-3-Clause
/* UNDER_TSAN is 1 in a build with ThreadSanitizer, for the few tests that cannot run there: it has a thread of its own, leaves
 * 1.5 TiB of address space, and does not follow threads that are started after a fork from several threads. */
#ifndef HOOP_TESTS_TSAN_H
#define HOOP_TESTS_TSAN_H

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

#endif
