#!/usr/bin/env bash
# In the guest: the tests of the transport over verbs. "all" runs them with each end in each role;
# without it, with the peer in another process and with this end accepting.
#
#   contract_tests.sh BIN [all]
set -euo pipefail
readonly BIN=$1 EXTENT=${2:-}

filter='*/verbs_process:*/verbs_accepting:Verbs*'
[[ $EXTENT == all ]] && filter='*/verbs:*/verbs_*:Verbs*'
cd /tmp
# Where nothing runs, something is wrong here: the device is there.
export NACRE_TEST_VERBS_HOST=10.77.0.1 NACRE_TEST_VERBS_LINK=dummy0
"$BIN/rdma_tests" --gtest_brief=1 --gtest_filter="$filter" | tee tests.log
grep -qE '^\[  PASSED  \] [1-9][0-9]+ tests' tests.log
! grep -q '^\[  SKIPPED' tests.log
