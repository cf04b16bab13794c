// The tests' own main: run as the far side of a connection, the binary carries out the commands of
// the test that started it.

#include <gtest/gtest.h>

#include "tests/support/rdma_peer.h"

int main(int argc, char** argv) {
  if (nacre::rdma::RunPeerProcess(argc, argv)) return 0;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
