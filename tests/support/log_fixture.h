#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/wal/log_reader.h"
#include "db/wal/log_segments.h"
#include "db/wal/log_space.h"
#include "db/wal/log_writer.h"
#include "pool/space/space_allocator.h"
#include "tests/support/pool_fixture.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre {

/// Segments out of a database's space, and which of them there are, as a manifest would have it.
/// Thread safety: all methods may be called from many threads at once.
class TestLogSpace : public LogSpace {
 public:
  TestLogSpace(pool::SpaceAllocator* space, int copies) : space_(space), copies_(copies) {}

  Status NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) override EXCLUDES(mutex_);
  /// What NewSegment answers from now on.
  void FailWith(const Status& status) EXCLUDES(mutex_);
  void Drop(const std::vector<LogSegment>& segments) EXCLUDES(mutex_);
  std::vector<LogSegment> segments() const EXCLUDES(mutex_);
  uint64_t last_number() const EXCLUDES(mutex_);

 private:
  struct Recorded {
    LogSegment segment;
    Placement placement;
  };

  pool::SpaceAllocator* const space_;
  const int copies_;
  mutable Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Recorded> segments_ GUARDED_BY(mutex_);
};

struct TestRecord {
  SequenceNumber first = 0;
  uint32_t count = 0;
  std::string payload;
  bool operator==(const TestRecord&) const = default;
};

/// A record whose payload, of about `bytes`, depends on its sequence alone.
TestRecord MakeRecord(SequenceNumber first, size_t bytes);

/// A log on embedded nodes.
class LogFixture : public pool::PoolFixture {
 protected:
  void OpenPoolFor(int nodes, int copies, const std::string& parameters = "");
  LogWriterOptions Options() const;
  void OpenWriter(const LogWriterOptions& options);
  Status Append(const TestRecord& record, uint64_t generation, uint64_t* position);
  Status AppendAndAwait(const TestRecord& record, uint64_t generation = 1);
  /// Opens a log with a replica on each of `nodes` nodes, and writes so many records of 2 to
  /// `most_bytes` + 1 bytes, which become `written`, into its first segment.
  void WriteLog(int nodes, int records, size_t most_bytes, Random* random,
                std::vector<TestRecord>* written);
  /// In turn, and also by several threads at once, which must find the same.
  Status Read(WALRecoveryMode mode, std::vector<TestRecord>* records);
  void ExpectSameInParts(WALRecoveryMode mode, const Status& expected,
                         const std::vector<TestRecord>& records);
  /// What the space has recorded is exactly `records`.
  void ExpectLog(const std::vector<TestRecord>& records);
  /// In the memory of its node.
  char* Byte(const ExtentAddr& copy, uint64_t offset);
  ~LogFixture() override;

  std::unique_ptr<TestLogSpace> log_space_;
  std::unique_ptr<LogWriter> writer_;
  LogReadResult result_;
};

}  // namespace nacre
