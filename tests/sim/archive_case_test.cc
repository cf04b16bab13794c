// Goal: whenever the owner, the archiver and all memory nodes die at once, and the archive's disk
// loses what was not synced, what is restored is a state that the database had, with everything
// that a wait for the archive had answered for. Method: a small simulated cluster; owners write
// numbered batches one after another and replace one another, archivers die and come back; then
// all is gone, and the archive is restored into nodes that are empty.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "nacre/archive.h"
#include "nacre/db.h"
#include "tests/archive/lossy_disk.h"
#include "tests/support/key_file.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "tests/support/temp_folder.h"
#include "util/clock.h"
#include "util/random.h"
#include "util/simulation.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kArchiveNodes = 4;
constexpr uint64_t kArchiveKeys = 16;

std::string ArchiveKey(uint64_t n) { return "key" + std::to_string(n % kArchiveKeys); }
std::string ArchiveValue(uint64_t n) { return std::to_string(n) + std::string(200, '.'); }

/// What owners have done so far. Lives until the simulation's process ends.
struct ArchiveWritten {
  uint64_t begun = 0;  ///< The number of the last batch that was begun.
  std::set<uint64_t> acknowledged{};
  uint64_t archived = 0;  ///< All that was acknowledged up to this number is in the archive.
  bool heard = false;     ///< An owner knows of the archive.
};

void WriteArchived(Case* c, ProcessId owner, ArchiveWritten* written) {
  c->cluster().Run(owner, "writer", [=] {
    auto* const db = new std::unique_ptr<DB>;  // Ends with its process.
    Options options = c->DatabaseOptions();
    options.take_over = true;
    options.max_archive_lag_MB = 64;
    while (!DB::Open(options, "db", db).ok()) Clock::System()->SleepFor(milliseconds(20));
    for (;;) {
      const uint64_t n = ++written->begun;
      if (!(*db)->Put({}, ArchiveKey(n), ArchiveValue(n)).ok()) return;
      written->acknowledged.insert(n);
      uint64_t readers = 0;
      if ((*db)->GetIntProperty("nacre.log.readers", &readers) && readers > 0) {
        written->heard = true;
      }
      if (n % 50 == 0) (*db)->Flush({}).IgnoreError();
      if (n % 5 == 0) Clock::System()->SleepFor(milliseconds(3));
      if (n % 20 != 0) continue;
      const uint64_t last = (*db)->GetLatestSequenceNumber();
      if ((*db)->WaitForArchive(last, milliseconds(100)).ok()) written->archived = n;
    }
  });
}

void ArchiveOn(Case* c, ProcessId process, const std::string& dir, const std::string& keys) {
  c->cluster().Run(process, "archive", [=] {
    auto* const archiver = new std::unique_ptr<Archiver>;
    const ArchiveOptions options{
        .interval = milliseconds(5), .log_file_bytes = 16 << 10, .encryption_key_file = keys};
    while (!Archiver::Open(c->DatabaseOptions(), "db", dir, options, archiver).ok()) {
      Clock::System()->SleepFor(milliseconds(20));
    }
    for (;;) Clock::System()->SleepFor(seconds(1));
  });
}

/// Is it a state that the database had, with all that is archived?
void Judge(Case* c, const ArchiveWritten& written, const std::string& dir,
           const std::string& keys) {
  c->In(c->NewProcess("judge"), [&] {
    Options options = c->DatabaseOptions();
    ArchiveRestoreOptions how;
    how.restore.encryption.key_file = keys;
    c->Expect(RestoreArchive(options, "copy", dir, how));
    options.create_if_missing = false;
    std::unique_ptr<DB> db;
    c->Expect(DB::Open(options, "copy", &db));
    std::map<std::string, uint64_t> found;
    uint64_t last = 0;
    for (uint64_t key = 0; key < kArchiveKeys; ++key) {
      std::string value;
      const Status status = db->Get({}, ArchiveKey(key), &value);
      c->Expect(status.ok() || status.IsNotFound(), status.ToString());
      if (status.ok()) found[ArchiveKey(key)] = std::stoull(value);
      if (status.ok()) last = std::max(last, found[ArchiveKey(key)]);
    }
    c->Expect(last >= written.archived, "restored up to batch " + std::to_string(last) +
                                            ", archived were all up to " +
                                            std::to_string(written.archived));
    for (uint64_t key = 0; key < kArchiveKeys; ++key) {
      // The last one that was acknowledged is there, or one in doubt that came after it.
      std::set<uint64_t> possible;
      bool certain = false;
      for (uint64_t n = last; n > 0 && !certain; --n) {
        if (ArchiveKey(n) != ArchiveKey(key)) continue;
        possible.insert(n);
        certain = written.acknowledged.contains(n);
      }
      const auto there = found.find(ArchiveKey(key));
      const bool is_possible = there == found.end() ? !certain : possible.contains(there->second);
      c->Expect(is_possible, ArchiveKey(key) + " is of batch " +
                                 (there == found.end() ? "none" : std::to_string(there->second)) +
                                 ", and the last one there is " + std::to_string(last));
    }
    c->Expect(db->Close());
  });
}

/// `keys`: a key file, or empty.
Telling AllIsLost(const std::string& folder, const std::string& keys) {
  return [=](Scheduler* scheduler, Case* c) {
    auto* const written = new ArchiveWritten;
    Random random(scheduler->Random());
    const std::string dir = folder + "/" + std::to_string(scheduler->Random());
    nacre_lossy_disk(dir.c_str(), random.Next());
    ProcessId owner = c->NewProcess("o0");
    WriteArchived(c, owner, written);
    c->Await("a write", [&] { return !written->acknowledged.empty(); });
    ProcessId archive = c->NewProcess("a0");
    ArchiveOn(c, archive, dir, keys);
    c->Await("the archive to have something",
             [&] { return written->heard && written->archived > 0; });
    for (uint64_t i = 1 + random.Uniform(4); i > 0; --i) {
      Clock::System()->SleepFor(milliseconds(random.Uniform(200)));
      if (random.OneIn(2)) {
        c->cluster().KillProcess(archive, /*told=*/true);
        nacre_lossy_disk_crash();
        archive = c->NewProcess("a" + std::to_string(i));
        ArchiveOn(c, archive, dir, keys);
      } else {
        const size_t before = written->acknowledged.size();
        c->cluster().KillProcess(owner, /*told=*/random.OneIn(2));
        owner = c->NewProcess("o" + std::to_string(i));
        WriteArchived(c, owner, written);
        c->Await("the next owner's writes",
                 [&] { return written->acknowledged.size() > before + 5; });
      }
    }
    Clock::System()->SleepFor(milliseconds(random.Uniform(100)));
    c->cluster().KillProcess(archive, /*told=*/true);
    nacre_lossy_disk_crash();
    c->cluster().KillProcess(owner, /*told=*/true);
    const ArchiveWritten then = *written;
    for (size_t node = 0; node < kArchiveNodes; ++node) {
      c->cluster().KillNode(node, /*told=*/true);
      c->cluster().StartNode(node);
    }
    c->cluster().AwaitNodes();
    Judge(c, then, dir, keys);
    return std::to_string(then.archived);
  };
}

TEST(ArchiveCaseTest, WhatWasArchivedIsRestoredWhateverTheDiskLost) {
  const TempFolder folder;
  Tell(AllIsLost(folder.path(), ""), {.nodes = kArchiveNodes}, 10);
}

TEST(ArchiveCaseTest, SoItIsIfTheArchiveIsEncrypted) {
  const TempFolder folder;
  const std::string keys = folder.File("keys");
  WriteKeyFile(keys, {"one"});
  Tell(AllIsLost(folder.path(), keys), {.nodes = kArchiveNodes}, 10);
}

}  // namespace
}  // namespace nacre::sim
