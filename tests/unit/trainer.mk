# SPDX-License-Identifier: BSD-3-Clause
if TRAINER
if HAVE_CHECK
trainer_tests = tests/unit/trainer_random tests/unit/trainer_sampler tests/unit/trainer_idx tests/unit/trainer_dataset \
	tests/unit/trainer_model tests/unit/trainer_optimizer tests/unit/trainer_bucket tests/unit/trainer_agree \
	tests/unit/trainer_fashion
check_PROGRAMS += $(trainer_tests)
TESTS += $(trainer_tests)
TRAINER_TEST_CPPFLAGS = $(TEST_CPPFLAGS) $(OPENBLAS_CFLAGS) $(ZLIB_CFLAGS)
TRAINER_TEST_LIBS = $(TRAINER_LIBS) $(TEST_LIBS)
tests_unit_trainer_random_SOURCES = tests/unit/trainer_random.c
tests_unit_trainer_random_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_random_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_sampler_SOURCES = tests/unit/trainer_sampler.c
tests_unit_trainer_sampler_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_sampler_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_idx_SOURCES = tests/unit/trainer_idx.c
tests_unit_trainer_idx_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_idx_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_dataset_SOURCES = tests/unit/trainer_dataset.c
tests_unit_trainer_dataset_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_dataset_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_model_SOURCES = tests/unit/trainer_model.c
tests_unit_trainer_model_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_model_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_optimizer_SOURCES = tests/unit/trainer_optimizer.c
tests_unit_trainer_optimizer_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_optimizer_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_bucket_SOURCES = tests/unit/trainer_bucket.c
tests_unit_trainer_bucket_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_bucket_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_agree_SOURCES = tests/unit/trainer_agree.c
tests_unit_trainer_agree_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_agree_LDADD = $(TRAINER_TEST_LIBS)
tests_unit_trainer_fashion_SOURCES = tests/unit/trainer_fashion.c tests/unit/trainer_check.h
tests_unit_trainer_fashion_CPPFLAGS = $(TRAINER_TEST_CPPFLAGS)
tests_unit_trainer_fashion_LDADD = $(TRAINER_TEST_LIBS)
endif
TESTS += tests/unit/trainer_run.sh
endif
EXTRA_DIST += tests/unit/trainer_run.sh
