# SPDX-License-Identifier: BSD-3-Clause
TESTS += tests/multi/test_hooprun.sh
EXTRA_DIST += tests/multi/test_hooprun.sh
