// Goal: a program may end, by `exit` or by returning from main, with a database open and its
// threads busy: no thread of the library uses what `exit` has destroyed.
// Method: a process of its own fills a database that flushes and compacts all the time, reads it
// and asks for its properties by several threads, and calls `exit`, which is held up at its very
// end while all threads go on. Any way but the ordinary one to end fails the test.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "nacre/db.h"
#include "nacre/statistics.h"
#include "tests/support/process/exit_while_busy.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

/// Names the pool to the process that ends: it runs the test again, up to where it ends.
constexpr char kPoolVariable[] = "NACRE_EXIT_TEST_POOL";

[[noreturn]] void OpenAndExit(const std::string& pool_uri) {
  Options options = SmallTableOptions(nullptr);
  options.pool_uri = pool_uri;
  options.redundancy = "rep(2)";
  options.statistics = CreateDBStatistics();
  std::unique_ptr<DB> opened;
  if (!DB::Open(options, "left open", &opened).ok()) std::abort();
  DB* const db = opened.release();
  ExitWhileBusy(3, [db, statistics = options.statistics](uint64_t round) {
    const std::string key = "key" + std::to_string(round % 5000);
    if (!db->Put({}, key, TestValue(round, 1000)).ok()) std::abort();
    std::string value;
    if (!db->Get({}, key, &value).ok()) std::abort();
    if (round % 50 != 0) return;
    std::string text;
    if (!db->GetProperty("nacre.stats", &text)) std::abort();
    if (statistics->ToString().empty()) std::abort();
    const std::unique_ptr<Iterator> iterator = db->NewIterator({});
    iterator->SeekToFirst();
    if (!iterator->Valid()) std::abort();
  });
}

class ExitTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override { ::unsetenv(kPoolVariable); }
};

TEST_F(ExitTest, OverAnEmbeddedPool) {
  EXPECT_EXIT(OpenAndExit("embedded:?nodes=3&size=256MiB"), testing::ExitedWithCode(0), "");
}

TEST_F(ExitTest, OverNodesOfOtherProcesses) {
  std::unique_ptr<MemnodeProcesses> nodes;
  if (std::getenv(kPoolVariable) == nullptr) {
    nodes = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.scheme = "tcp",
                                 .size = "256MiB",
                                 .parameters = "?tls=1",
                                 .environment = {"NACRE_SECRET=tell-nobody-4711"}});
    ::setenv("NACRE_SECRET", "tell-nobody-4711", 1);
    ::setenv(kPoolVariable, (nodes->pool_uri() + "?tls=1").c_str(), 1);
  }
  EXPECT_EXIT(OpenAndExit(std::getenv(kPoolVariable)), testing::ExitedWithCode(0), "");
  ::unsetenv("NACRE_SECRET");
}

}  // namespace
}  // namespace nacre
