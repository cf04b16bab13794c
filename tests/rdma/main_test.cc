// The tests' own main: run as the far side of a connection, the binary carries out the commands of
// the test that started it.

#include <gtest/gtest.h>

#include "tests/support/process/hang_report.h"
#include "tests/support/rdma/rdma_peer.h"

// What a test does to its memory and what the I/O threads of `tcp` do there for a peer process are
// ordered by what the two processes tell one another: over a pipe there, over the connection back.
// ThreadSanitizer sees the halves of that only, so where a peer's bytes are put into place, or
// taken from, looks like a race with the test to it. All else is looked at here, and these places
// where both ends are in one process, by the tests of the layers above.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:tests/support/rdma/rdma_peer.cc\n"
         "race:nacre::rdma::Responder::\n"
         "race:nacre::rdma::FrameReader::TakePayload\n"
         "race:nacre::rdma::TcpConnection::ReadBytes\n"  // TLS decrypts into place.
         "race:nacre::rdma::TcpConnection::Receive\n";
}

int main(int argc, char** argv) {
  if (nacre::rdma::RunPeerProcess(argc, argv)) return 0;
  testing::InitGoogleTest(&argc, argv);
  nacre::ReportHangs();
  return RUN_ALL_TESTS();
}
