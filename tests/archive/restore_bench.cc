// Goal: what a restore of an archive takes, for the tables of its base and for the log behind it,
// by the number of threads; what encryption adds to that, and to the writing of the log and of a
// base.
//
// Method: an owner over three nodes of this host writes batches of ten values while an archiver
// follows. BM_RestoreLog has nearly all of them in the log, BM_RestoreBase in the base;
// BM_RestoreLogByWrites writes what the first one loads a batch at a time, by one thread. All are
// restored into rs(2,1) tables on embedded nodes, whose memory was used before and which share the
// processors with the restore. BM_WriteLog writes a file of the log as the archiver does, a
// mebibyte at a time, and BM_MakeBase a first base. The folder is below /dev/shm, so that no disk
// is measured. The argument `encrypted` says whether it is. NACRE_RESTORE_MIB says how much is
// written (512).

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "archive/archive_folder.h"
#include "archive/log_file.h"
#include "nacre/archive.h"
#include "nacre/checkpoint.h"
#include "nacre/db.h"
#include "nacre/pool.h"
#include "nacre/write_batch.h"
#include "tests/support/key_file.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/crypto/key_ring.h"
#include "util/crypto/sealed_file.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kValueBytes = 400;
constexpr int kBatch = 10;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

uint64_t BenchBytes() {
  const char* const text = std::getenv("NACRE_RESTORE_MIB");
  return (text == nullptr ? 512 : std::stoull(text)) << 20;
}

std::string BenchFolder(const std::string& name) {
  return "/dev/shm/nacre-restore-bench-" + std::to_string(::getpid()) + "-" + name;
}

/// A key file, which is there until the end.
std::string BenchKeys() {
  static const TempFolder* const folder = new TempFolder;
  const std::string path = folder->File("keys");
  WriteKeyFile(path, {"bench"});
  return path;
}

/// An archive, made once for all runs that ask for it.
class Archive {
 public:
  Archive(bool in_base, bool encrypted)
      : dir_(BenchFolder(std::string(in_base ? "base" : "log") + (encrypted ? "-encrypted" : ""))),
        key_file_(encrypted ? BenchKeys() : "") {
    std::filesystem::create_directories(dir_);
    MemnodeProcesses nodes(
        3, {.size = std::to_string((BenchBytes() >> 20) * 4 + 512) + "MiB", .slab_size = "64MiB"});
    Options options;
    options.create_if_missing = true;
    options.pool_uri = nodes.pool_uri();
    options.redundancy = "rep(2)";
    options.max_archive_lag_MB = BenchBytes() >> 19;
    std::unique_ptr<DB> db;
    Check(DB::Open(options, "bench", &db));
    if (in_base) {
      Write(db.get());
      Check(db->Flush({}));
      Check(db->WaitForCompact());
    }
    std::unique_ptr<Archiver> archiver;
    Check(Archiver::Open(options, "bench", dir_, {.encryption_key_file = key_file_}, &archiver));
    Check(archiver->WaitForArchive(db->GetLatestSequenceNumber(), kPatience));
    if (!in_base) Write(db.get());
    Check(archiver->WaitForArchive(db->GetLatestSequenceNumber(), kPatience));
    archiver.reset();
    Check(db->Close());
    ArchiveInfo info;
    Check(GetArchive(dir_, &info, key_file_));
    for (const ArchivedRange& range : info.log) bytes_ += range.bytes;
    bytes_ += info.bases.back().bytes;
  }
  ~Archive() { std::filesystem::remove_all(dir_); }

  const std::string& dir() const { return dir_; }
  const std::string& key_file() const { return key_file_; }
  /// Those of the log and of the tables of the base.
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::chrono::minutes kPatience{5};

  static void Write(DB* db) {
    Random random(7);
    const uint64_t count = BenchBytes() / (kValueBytes + 20);
    WriteBatch batch;
    for (uint64_t i = 0; i < count; ++i) {
      std::string key = std::to_string(random.Uniform(count));
      key.insert(0, 16 - key.size(), '0');
      Check(batch.Put(key, TestValue(i, kValueBytes)));
      if (batch.Count() < kBatch) continue;
      Check(db->Write({}, &batch));
      batch.Clear();
    }
    Check(db->Write({}, &batch));
  }

  const std::string dir_;
  const std::string key_file_;
  uint64_t bytes_ = 0;
};

/// As a restore would be without LoadBatches: the log is read and written a batch at a time.
Status RestoreByWrites(const Options& options, const Archive& archive) {
  const std::string& dir = archive.dir();
  RestoreOptions restore;
  restore.threads = 1;
  restore.then = [&](DB* db) -> Status {
    std::unique_ptr<ArchiveFolder> folder;
    NACRE_RETURN_IF_ERROR(ArchiveFolder::Look(dir, nullptr, &folder));
    for (const LogFileInfo& file : folder->files()) {
      std::unique_ptr<LogFileReader> reader;
      NACRE_RETURN_IF_ERROR(LogFileReader::Open(file.path, {}, &reader));
      ArchivedBatch batch;
      for (bool end = false; !end;) {
        NACRE_RETURN_IF_ERROR(reader->Next(&batch, &end));
        if (end || batch.last() <= db->GetLatestSequenceNumber()) continue;
        WriteBatch updates(batch.bytes.ToString());
        NACRE_RETURN_IF_ERROR(db->Write(NoLog(), &updates));
      }
    }
    return Status::OK();
  };
  return RestoreDB(options, "restored", dir + "/base", restore);
}

using RestoreFrom = std::function<Status(const Options& options, const Archive& archive)>;

void Restore(benchmark::State& state, bool in_base, bool encrypted,
             const RestoreFrom& restore_from) {
  static std::unique_ptr<Archive> archives[4];
  std::unique_ptr<Archive>& archive = archives[(in_base ? 2 : 0) + (encrypted ? 1 : 0)];
  if (archive == nullptr) archive = std::make_unique<Archive>(in_base, encrypted);
  Options options;
  options.redundancy = "rs(2,1)";
  const uint64_t mib = BenchBytes() >> 20;
  Check(
      Pool::Open("embedded:?nodes=4&size=" + std::to_string(mib * 2 + 256) + "MiB", &options.pool));
  const auto restore = [&] { Check(restore_from(options, *archive)); };
  const auto drop = [&] { Check(DestroyDB("restored", options)); };
  restore();  // The memory was used before.
  drop();
  for (auto _ : state) {
    restore();
    state.PauseTiming();
    drop();
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<int64_t>(archive->bytes() * state.iterations()));
}

RestoreFrom ByThreads(const benchmark::State& state) {
  ArchiveRestoreOptions how;
  how.restore.threads = static_cast<int>(state.range(0));
  return [how](const Options& options, const Archive& archive) {
    ArchiveRestoreOptions asked = how;
    asked.restore.encryption.key_file = archive.key_file();
    return RestoreArchive(options, "restored", archive.dir(), asked);
  };
}

void BM_RestoreLogByWrites(benchmark::State& state) {
  Restore(state, false, false, RestoreByWrites);
}
void BM_RestoreLog(benchmark::State& state) {
  Restore(state, false, state.range(1) != 0, ByThreads(state));
}
void BM_RestoreBase(benchmark::State& state) {
  Restore(state, true, state.range(1) != 0, ByThreads(state));
}

void BM_WriteLog(benchmark::State& state) {
  Sealing sealing{.keys = nullptr, .context = "bench"};
  if (state.range(0) != 0) Check(KeyRing::Read(BenchKeys(), &sealing.keys));
  WriteBatch batch;
  for (int i = 0; i < kBatch; ++i) {
    Check(batch.Put("key of sixteen b" + std::to_string(i), TestValue(1, kValueBytes)));
  }
  const std::string path = BenchFolder("file.log");
  uint64_t bytes = 0;
  for (auto _ : state) {
    std::unique_ptr<LogFileWriter> writer;
    Check(LogFileWriter::Create(path, 1, 0, sealing, &writer));
    while (writer->bytes() < ArchiveOptions().log_file_bytes) {
      writer->Add(batch.Data(), 1);
      if (writer->unsynced_bytes() >= 1 << 20) Check(writer->Sync());
    }
    Check(writer->Finish());
    bytes += writer->bytes();
  }
  std::filesystem::remove(path);
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void BM_MakeBase(benchmark::State& state) {
  Options options;
  options.create_if_missing = true;
  options.redundancy = "rep(2)";
  Check(
      Pool::Open("embedded:?nodes=3&size=" + std::to_string((BenchBytes() >> 20) * 4 + 512) + "MiB",
                 &options.pool));
  std::unique_ptr<DB> db;
  Check(DB::Open(options, "bench", &db));
  const std::string value = TestValue(1, kValueBytes);
  for (uint64_t i = 0; i < BenchBytes() / (kValueBytes + 20); ++i) {
    Check(db->Put({}, std::to_string(1'000'000'000 + i), value));
  }
  Check(db->Flush({}));
  Check(db->WaitForCompact());
  std::unique_ptr<Checkpoint> checkpoint;
  Check(Checkpoint::Create(db.get(), &checkpoint));
  CheckpointOptions how;
  if (state.range(0) != 0) how.encryption.key_file = BenchKeys();
  CheckpointInfo info;
  uint64_t bytes = 0;
  for (auto _ : state) {
    const std::string dir = BenchFolder("made");
    Check(checkpoint->CreateCheckpoint(dir, how, &info));
    bytes += info.bytes;
    state.PauseTiming();
    std::filesystem::remove_all(dir);
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

BENCHMARK(BM_RestoreLogByWrites)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_RestoreLog)
    ->ArgNames({"threads", "encrypted"})
    ->ArgsProduct({{1, 2, 4}, {0, 1}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_RestoreBase)
    ->ArgNames({"threads", "encrypted"})
    ->ArgsProduct({{1, 2, 4}, {0, 1}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_WriteLog)
    ->ArgName("encrypted")
    ->Arg(0)
    ->Arg(1)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_MakeBase)
    ->ArgName("encrypted")
    ->Arg(0)
    ->Arg(1)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nacre
