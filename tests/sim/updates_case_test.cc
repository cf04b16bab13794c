// Goal: DB::GetUpdatesSince gives out every acknowledged batch once and in order, and nothing that
// the database turns out not to have, while owners die in the middle of writes, or are cut off and
// replaced. Where nodes of the log are lost, whose segments the owner lets go once all is in
// tables, what is left out shows by its sequences. Method: a small simulated cluster; owners write
// numbered batches one after another, a reader collects them; in the end its list and the database
// are compared.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/transaction_log.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"
#include "util/random.h"
#include "util/simulation.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kUpdatesKeys = 16;

/// The key and the value of batch `n`.
std::string UpdatesKey(uint64_t n) { return "key" + std::to_string(n % kUpdatesKeys); }
std::string UpdatesValue(uint64_t n) { return std::to_string(n) + std::string(200, '.'); }

/// The number of a batch that has one update.
class NumberOf final : public WriteBatch::Handler {
 public:
  Status PutCF(uint32_t, const Slice&, const Slice& value) override {
    number = std::stoull(value.ToString());
    return Status::OK();
  }
  uint64_t number = 0;
};

/// What owners and the reader of a story have done so far. Lives until the simulation's process
/// ends.
struct UpdatesWritten {
  uint64_t begun = 0;  ///< The number of the last batch that was begun.
  std::set<uint64_t> acknowledged{};
  std::vector<uint64_t> taken{};  ///< Numbers, in the order in which they came.
  uint64_t next_sequence = 0;     ///< 0: none has come.
  uint64_t whole_from = 1;        ///< Nothing is left out from this number on.
  /// The owner keeps the log for the reader, and else only what is not in tables.
  bool acknowledges = false;
  bool heard = false;  ///< The owner knows of the reader.
  bool stop = false;
};

void WriteUpdates(Case* c, ProcessId owner, UpdatesWritten* written) {
  c->cluster().Run(owner, "writer", [=] {
    auto* const db = new std::unique_ptr<DB>;  // Ends with its process.
    Options options = c->DatabaseOptions();
    options.take_over = true;
    options.WAL_size_limit_MB = written->acknowledges ? 0 : 64;
    options.max_archive_lag_MB = written->acknowledges ? 64 : 0;
    while (!DB::Open(options, "db", db).ok()) Clock::System()->SleepFor(milliseconds(20));
    for (;;) {
      const uint64_t n = ++written->begun;
      const Status status = (*db)->Put({}, UpdatesKey(n), UpdatesValue(n));
      if (status.ok()) written->acknowledged.insert(n);
      if (!status.ok() || written->stop) return;
      uint64_t readers = 0;
      if ((*db)->GetIntProperty("nacre.log.readers", &readers) && readers > 0) {
        written->heard = true;
      }
      if (n % 50 == 0 && (written->heard || !written->acknowledges)) {
        (*db)->Flush({}).IgnoreError();
      }
      if (n % 5 == 0) Clock::System()->SleepFor(milliseconds(3));
    }
  });
}

/// `may_miss`: some of the log may be gone before it is read.
void ReadOn(Case* c, ProcessId reader, UpdatesWritten* written, bool may_miss) {
  c->cluster().Run(reader, "reader", [=] {
    auto* const db = new std::unique_ptr<DB>;
    auto* const updates = new std::unique_ptr<TransactionLogIterator>;
    const auto again = [] { Clock::System()->SleepFor(milliseconds(20)); };
    while (!DB::OpenAsSecondary(c->DatabaseOptions(), "db", db).ok()) again();
    while (!(*db)->GetUpdatesSince(1, updates).ok()) again();
    const auto acknowledge = [&] {
      const uint64_t next = std::max<uint64_t>(written->next_sequence, 1);
      return (*updates)->Acknowledge(/*reader=*/1, next - 1, /*restorable=*/true);
    };
    while (written->acknowledges && !acknowledge().ok()) again();
    for (;; (*updates)->Next()) {
      if (!(*updates)->Valid()) {
        Clock::System()->SleepFor(milliseconds(1));
        if (written->acknowledges) acknowledge().IgnoreError();
        continue;
      }
      // It is late now and then: what it has not got by then is in tables.
      if (written->taken.size() % 100 == 99) Clock::System()->SleepFor(milliseconds(300));
      const BatchResult batch = (*updates)->GetBatch();
      NumberOf number;
      c->Expect(batch.write_batch->Iterate(&number));
      const uint64_t expected = written->next_sequence == 0 ? 1 : written->next_sequence;
      if (batch.sequence != expected) {
        c->Expect(may_miss && batch.sequence > expected,
                  "sequence " + std::to_string(batch.sequence) + " comes behind " +
                      std::to_string(expected - 1));
        written->whole_from = number.number;
      }
      written->next_sequence = batch.sequence + batch.write_batch->Count();
      written->taken.push_back(number.number);
    }
  });
}

/// Has the database the batches of the list, and no others?
void Compare(Case* c, const UpdatesWritten& written) {
  c->Expect(std::ranges::is_sorted(written.taken), "the batches came in another order");
  c->Expect(std::ranges::adjacent_find(written.taken) == written.taken.end(), "a batch came twice");
  std::map<std::string, uint64_t> last;
  for (const uint64_t n : written.taken) last[UpdatesKey(n)] = n;
  const std::set<uint64_t> taken(written.taken.begin(), written.taken.end());
  for (const uint64_t n : written.acknowledged) {
    c->Expect(taken.contains(n) || n < written.whole_from,
              "batch " + std::to_string(n) + " was acknowledged and not read");
  }
  c->In(c->NewProcess("judge"), [&] {
    std::unique_ptr<DB> db;
    c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &db));
    for (const auto& [key, n] : last) {
      if (n < written.whole_from) continue;
      std::string value;
      c->Expect(db->Get({}, key, &value));
      c->Expect(value == UpdatesValue(n), key + " is of batch " + value.substr(0, 8) +
                                              ", and the last one read is " + std::to_string(n));
    }
  });
}

/// Owners replace one another; `nodes`: nodes of the log are lost, too; `acknowledges`: the log is
/// kept for the reader alone.
Telling OwnersComeAndGo(bool nodes, bool acknowledges = false) {
  return [=](Scheduler* scheduler, Case* c) {
    auto* const written = new UpdatesWritten;
    written->acknowledges = acknowledges;
    Random random(scheduler->Random());
    ProcessId owner = c->NewProcess("o0");
    WriteUpdates(c, owner, written);
    c->Await("a write", [&] { return !written->acknowledged.empty(); });
    ReadOn(c, c->NewProcess("reader"), written, /*may_miss=*/nodes);
    if (acknowledges) c->Await("the owner to hear of the reader", [&] { return written->heard; });
    for (int i = 1; i <= 4; ++i) {
      Clock::System()->SleepFor(milliseconds(random.Uniform(300)));
      if (nodes && random.OneIn(2)) {
        // A node of the log, which another one takes the place of.
        const std::vector<size_t> log = c->LogNodes();
        if (!log.empty()) {
          const size_t lost = log[random.Uniform(log.size())];
          c->cluster().KillNode(lost, /*told=*/random.OneIn(2));
          c->cluster().StartNode(lost);
          c->cluster().AwaitNodes();
          c->AwaitSpare(1);
        }
      }
      const ProcessId next = c->NewProcess("o" + std::to_string(i));
      if (random.OneIn(2)) {
        c->cluster().KillProcess(owner, /*told=*/random.OneIn(2));
      } else if (random.OneIn(2)) {
        c->CutOffFromAll(owner);
      }
      const size_t before = written->acknowledged.size();
      WriteUpdates(c, next, written);
      c->Await("the next owner's writes",
               [&] { return written->acknowledged.size() > before + 5; });
      c->Heal();
      owner = next;
    }
    written->stop = true;
    c->Await("the reader", [&] {
      return !written->taken.empty() && written->taken.back() >= *written->acknowledged.rbegin();
    });
    Clock::System()->SleepFor(milliseconds(200));
    Compare(c, *written);
    return std::to_string(written->taken.size());
  };
}

TEST(UpdatesCaseTest, EachBatchIsGivenOutOnceWhateverBecomesOfOwners) {
  Tell(OwnersComeAndGo(/*nodes=*/false), {.nodes = 4}, 5);
}

TEST(UpdatesCaseTest, WhatIsLeftOutSinceNodesWereLostShowsBySequences) {
  Tell(OwnersComeAndGo(/*nodes=*/true), {.nodes = 4}, 5);
}

TEST(UpdatesCaseTest, WhatAReaderHasNotAcknowledgedIsKeptWhateverBecomesOfOwners) {
  Tell(OwnersComeAndGo(/*nodes=*/false, /*acknowledges=*/true), {.nodes = 4}, 5);
}

}  // namespace
}  // namespace nacre::sim
