# SPDX-License-Identifier: BSD-3-Clause
TESTS += tests/install/run.sh
EXTRA_DIST += tests/install/run.sh tests/install/consumer.c
