# SPDX-License-Identifier: BSD-3-Clause
# hoop-train. All but its main is a convenience library, which the tests link too.
if TRAINER
noinst_LTLIBRARIES += libtrainer.la
libtrainer_la_SOURCES = trainer/agree.c trainer/agree.h trainer/bucket.c trainer/bucket.h trainer/dataset.c \
	trainer/dataset.h trainer/evaluate.c trainer/fail.c trainer/fail.h trainer/idx.c trainer/idx.h \
	trainer/loop.c trainer/model.c trainer/model.h trainer/optimizer.c trainer/optimizer.h \
	trainer/options.c trainer/options.h trainer/picture.c trainer/picture.h trainer/random.c \
	trainer/random.h trainer/report.c trainer/report.h trainer/sampler.c trainer/sampler.h \
	trainer/setup.c trainer/signals.c trainer/signals.h trainer/synthetic.c trainer/trainer.h
libtrainer_la_CPPFLAGS = $(TOOL_CPPFLAGS) $(OPENBLAS_CFLAGS) $(ZLIB_CFLAGS)
TRAINER_LIBS = libtrainer.la libtools.la $(OPENBLAS_LIBS) $(ZLIB_LIBS) -lm

bin_PROGRAMS += trainer/hoop-train
trainer_hoop_train_SOURCES = trainer/main.c
trainer_hoop_train_CPPFLAGS = $(TOOL_CPPFLAGS)
trainer_hoop_train_LDADD = $(TRAINER_LIBS) libhoop.la

man1_MANS += trainer/hoop-train.1
completion_DATA += trainer/hoop-train.bash
trainer/hoop-train.1: trainer/hoop-train$(EXEEXT)
	$(TOOL_MAN)
trainer/hoop-train.bash: trainer/hoop-train$(EXEEXT)
	$(TOOL_COMPLETION)
endif
