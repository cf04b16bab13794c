// The entry point of all test binaries that bring none of their own.

#include <gtest/gtest.h>

#include "tests/support/process/hang_report.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  nacre::ReportHangs();
  return RUN_ALL_TESTS();
}
