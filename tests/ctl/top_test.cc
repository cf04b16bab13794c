// Goal: `nacre-ctl top` shows a pool as it is: once as plain text, or on a terminal, where it
// follows nodes that die, hang and come back, and which it leaves as it found it, whatever ends it.
// Method: the tool as a process, in a pipe and on a pseudo terminal, over nacre-memnode processes
// that the test kills, stops and starts; the test owns a database.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "pool/pool_impl.h"
#include "pool/reports.h"
#include "tests/ctl/pseudo_terminal.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::ctl {
namespace {

constexpr const char* kCtl = NACRE_TEST_BIN_DIR "/nacre-ctl";

class TopTest : public testing::Test {
 protected:
  TopTest() { ::setenv("TERM", "xterm", /*overwrite=*/1); }

  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"top", "--pool=" + nodes_.pool_uri()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  ProcessResult Once(const std::vector<std::string>& more = {}) const {
    return RunBinary("nacre-ctl", Arguments(more), /*seconds=*/60);
  }

  MemnodeProcesses nodes_{3, {.size = "64MiB", .slab_size = "1MiB"}};
};

/// With a database that this process owns.
class TopOfDatabaseTest : public TopTest {
 protected:
  void SetUp() override {
    pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.redundancy = "rep(2)";
    ASSERT_TRUE(IsOk(DB::Open(options, "orders", &db_)));
    ASSERT_TRUE(IsOk(db_->Put({}, "key", TestValue(1, 100'000))));
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  /// Has a reader of the database's log say how far it is.
  void Acknowledge(uint64_t reader, uint64_t sequence) {
    std::vector<pool::KnownDatabase> databases;
    pool::Directions directions;
    ASSERT_TRUE(IsOk(pool::ListDatabases(pool_->client(), 0, &databases, &directions)));
    ASSERT_EQ(databases.size(), 1u);
    std::vector<pool::LogReader> readers;
    ASSERT_TRUE(IsOk(pool::AcknowledgeLog(pool_->client(), pool::LiveNodes(*pool_->client()),
                                          databases[0].database_id, reader, sequence,
                                          /*restorable=*/true, &readers)));
  }

  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
};

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\n" << (text)

TEST_F(TopOfDatabaseTest, OnceIsPlainText) {
  Acknowledge(0xabc, 1);
  ProcessResult result;
  // The owner reports each second.
  ASSERT_TRUE(Eventually([&] {
    result = Once({"--once"});
    return result.output.find("rep(2)") != std::string::npos;
  }));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output.find('\033'), std::string::npos) << result.output;
  for (const char* part : {"3 nodes: 3 up; 1 database, 1 open", "memory   [", "traffic  ",
                           "requests a second", "workers busy", "orders   open  rep(2)", " idle\n",
                           "log reader 0000000000000abc: has all up to 1, restorable up to 1"}) {
    EXPECT_HAS(result.output, part);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) EXPECT_HAS(result.output, nodes_[i].address() + " up");

  // No terminal, no screen.
  result = Once();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output.find('\033'), std::string::npos) << result.output;
  EXPECT_HAS(result.output, "3 nodes: 3 up");

  result = Once({"--json", "--interval_s=0.2"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* part :
       {"\"state\": \"well\"", "\"per_second\": {\"seconds\": ", "\"answer_seconds\": 0.",
        "\"name\": \"orders\"", "\"reader\": \"0000000000000abc\", \"sequence\": 1,"}) {
    EXPECT_HAS(result.output, part);
  }
  EXPECT_EQ(result.output.find("null"), std::string::npos) << result.output;

  ASSERT_TRUE(IsOk(db_->Close()));
  EXPECT_HAS(Once().output, "orders   none");
}

TEST_F(TopTest, OnceGoesOnWithoutNodesThatDieOrHang) {
  nodes_[0].Kill();
  nodes_[2].Pause();
  const ProcessResult result = Once({"--timeout_ms=3600000"});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_HAS(result.output, "3 nodes: 1 up, 2 down; 0 databases, 0 open");
  EXPECT_HAS(result.output, nodes_[1].address() + " up");
  EXPECT_HAS(result.output, nodes_[2].address() + " down");
  nodes_[1].Kill();
  nodes_[2].Kill();
  EXPECT_HAS(Once().output, "no node answers");
}

TEST_F(TopTest, MistakesAreNamedOnTheScreenAsItWas) {
  for (const std::string interval : {"0", "-1", "4000"}) {
    const ProcessResult result = Once({"--interval_s=" + interval});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_HAS(result.output, "--interval_s");
  }
  PseudoTerminal top(kCtl, {"top", "--pool=carrier-pigeon:here"});
  EXPECT_EQ(top.AwaitExit(), 1);
  EXPECT_HAS(top.screen().Text(), "nacre-ctl: ");
  EXPECT_TRUE(top.IsRestored());
  EXPECT_EQ(top.bytes().find("1049"), std::string::npos);
}

TEST_F(TopTest, TheScreenFollowsNodesThatGoAndComeBack) {
  PseudoTerminal top(kCtl, Arguments());
  ASSERT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
  EXPECT_TRUE(top.screen().alternate());
  EXPECT_FALSE(top.screen().cursor_shown());
  EXPECT_TRUE(top.IsRaw());
  EXPECT_TRUE(top.AwaitShown("requests a second")) << top.screen().Text();

  nodes_[1].Kill();
  EXPECT_TRUE(top.AwaitShown("3 nodes: 2 up, 1 down;")) << top.screen().Text();
  EXPECT_TRUE(top.AwaitShown(nodes_[1].address() + " down"));
  nodes_[1].Start();
  EXPECT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
  EXPECT_TRUE(top.AwaitShown(nodes_[1].address() + " up"));

  nodes_[2].Pause();
  EXPECT_TRUE(top.AwaitShown(nodes_[2].address() + " down")) << top.screen().Text();
  EXPECT_TRUE(top.AwaitShown(nodes_[0].address() + " up"));
  nodes_[2].Resume();
  EXPECT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();

  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].Kill();
  EXPECT_TRUE(top.AwaitShown("no node answers")) << top.screen().Text();
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].Start();
  EXPECT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();

  top.Type("q");
  EXPECT_EQ(top.AwaitExit(), 0);
  EXPECT_TRUE(top.IsRestored());
  EXPECT_EQ(top.screen().unknown(), "");
}

TEST_F(TopTest, APoolThatIsNotThereYetIsWaitedFor) {
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].Kill();
  PseudoTerminal top(kCtl, Arguments({"--interval_s=0.2"}));
  ASSERT_TRUE(top.AwaitShown("3 nodes: 3 down;")) << top.screen().Text();
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].Start();
  EXPECT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
  // The pool's end does not keep it from ending.
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].Kill();
  top.Type("q");
  EXPECT_EQ(top.AwaitExit(), 0);
  EXPECT_TRUE(top.IsRestored());
}

TEST_F(TopTest, KeysAndSizesChangeWhatIsShown) {
  PseudoTerminal top(kCtl, Arguments());
  ASSERT_TRUE(top.AwaitShown("s sorts: as given")) << top.screen().Text();
  ASSERT_TRUE(top.AwaitShown("conns")) << top.screen().Text();
  top.Type("s");
  EXPECT_TRUE(top.AwaitShown("s sorts: busiest first")) << top.screen().Text();
  top.Type("x");
  top.ResizeScreen(/*rows=*/10, /*columns=*/60);
  EXPECT_TRUE(top.AwaitShown("conns", /*shown=*/false)) << top.screen().Text();
  EXPECT_TRUE(top.AwaitShown("read/s")) << top.screen().Text();
  const std::string narrow = top.screen().Text();
  EXPECT_EQ(std::count(narrow.begin(), narrow.end(), '\n'), 10) << narrow;
  top.Type("Q");
  EXPECT_EQ(top.AwaitExit(), 0);
  EXPECT_TRUE(top.IsRestored());
}

TEST_F(TopTest, SignalsEndItWithTheTerminalAsItWas) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    PseudoTerminal top(kCtl, Arguments());
    ASSERT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
    top.Signal(signal);
    EXPECT_EQ(top.AwaitExit(), 0) << signal;
    EXPECT_TRUE(top.IsRestored()) << signal;
  }
  PseudoTerminal top(kCtl, Arguments());
  ASSERT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
  top.Type("\x03");
  EXPECT_EQ(top.AwaitExit(), 0);
  EXPECT_TRUE(top.IsRestored());
}

TEST_F(TopTest, ATerminalThatGoesEndsIt) {
  PseudoTerminal top(kCtl, Arguments());
  ASSERT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
  top.HangUp();
  // It may notice by the signal, or by its output.
  EXPECT_GE(top.AwaitExit(), 0);
}

TEST_F(TopTest, AStopGivesTheTerminalBackUntilItGoesOn) {
  PseudoTerminal top(kCtl, Arguments());
  ASSERT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
  top.Type("\x1a");
  ASSERT_TRUE(top.AwaitStop());
  EXPECT_TRUE(top.IsRestored());
  top.Signal(SIGCONT);
  EXPECT_TRUE(top.AwaitShown("3 nodes: 3 up;")) << top.screen().Text();
  EXPECT_TRUE(top.screen().alternate());
  EXPECT_TRUE(top.IsRaw());
  top.Type("q");
  EXPECT_EQ(top.AwaitExit(), 0);
  EXPECT_TRUE(top.IsRestored());
}

}  // namespace
}  // namespace nacre::ctl
