#!/usr/bin/env bash
# In the guest: nodes, clients and links that end or vanish, seen from databases over verbs. "all"
# adds nodes that die over and over while what all hold is counted, and many threads and nodes; in
# fewer rounds than elsewhere, because all is emulated (NACRE_TEST_SCALE=1 for all of them).
#
#   faults.sh BIN [all]
set -euo pipefail
readonly BIN=$1 EXTENT=${2:-}

filter='*VerbsFaultTest.*'
[[ $EXTENT == all ]] && filter+=':*LeakTest*/verbs*:*ScaleTest*/verbs*'
cd /tmp
export NACRE_TEST_VERBS_HOST=10.77.0.1 NACRE_TEST_VERBS_LINK=dummy0
export NACRE_TEST_SCALE=${NACRE_TEST_SCALE:-0.05}
"$BIN/integration_tests" --gtest_brief=1 --gtest_filter="$filter" | tee tests.log
# Where nothing runs, something is wrong here: the device is there.
grep -qE '^\[  PASSED  \] [1-9][0-9]* tests' tests.log
! grep -q '^\[  SKIPPED' tests.log
