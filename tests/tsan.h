// SPDX-License-Identifier: BSD-3-Clause
/* UNDER_TSAN is 1 in a build with ThreadSanitizer, for the few tests that cannot run there: it has a thread of its own, leaves
 * 1.5 TiB of address space, and does not follow threads that are started after a fork from several threads. UNDER_ASAN is 1 in a build
 * with AddressSanitizer.
 *
 * THIN is 1 in both: the same code runs there once more, several times slower, to find accesses that are wrong whatever the result. So
 * large sweeps of cases take fewer of them, by a rule that each states; whether the results are right is for the other builds to show. */
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

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

enum { THIN = UNDER_ASAN || UNDER_TSAN };

#endif
