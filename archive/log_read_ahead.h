#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "archive/log_file.h"
#include "nacre/status.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre {

/// Reads files of a log, one after another, ahead of the thread that takes what is in them. Its own
/// threads take turns to read a piece each, and compare it with its checksums while the next one
/// reads. What is ahead is a bounded number of pieces.
///
/// Thread safety: Next by one thread.
class LogReadAhead {
 public:
  /// `files` are in the order of their sequences. Each is read up to where it ended when it was
  /// listed, and has to be whole there. `threads` >= 1.
  LogReadAhead(std::vector<LogFileInfo> files, Sealing sealing, size_t threads);
  /// Waits for the threads, which end soon.
  ~LogReadAhead();
  LogReadAhead(const LogReadAhead&) = delete;
  LogReadAhead& operator=(const LogReadAhead&) = delete;

  /// The batches of the next piece, which are valid until the next call; null at the end, after
  /// which there must be no further call. Fails as LogFileReader does; after a failure, too, there
  /// must be none.
  Status Next(const std::vector<ArchivedBatch>** batches);

 private:
  struct Slot {
    enum class State : uint8_t { kFree, kBusy, kDone };
    State state = State::kFree;
    bool end = false;  ///< There is no such piece.
    Status status{};
    // Those of one thread at a time, by its state.
    LogPiece piece{};
    std::vector<ArchivedBatch> batches{};
  };

  void Run() EXCLUDES(reading_, mutex_);
  /// The slot of the next piece, which has been read and not checked; null if there is none to
  /// read, or no need.
  Slot* Read() EXCLUDES(reading_, mutex_);
  Status ReadPiece(LogPiece* piece, bool* end) REQUIRES(reading_);
  void Finish(Slot* slot, Status status, bool end) EXCLUDES(mutex_);

  const std::vector<LogFileInfo> files_;
  const Sealing sealing_;
  Mutex reading_ ACQUIRED_BEFORE(mutex_);  ///< One thread at a time reads, in the order of pieces.
  size_t next_file_ GUARDED_BY(reading_) = 0;
  std::unique_ptr<LogFileReader> reader_ GUARDED_BY(reading_);
  uint64_t next_read_ GUARDED_BY(reading_) = 0;  ///< Number of the next piece.
  bool ended_ GUARDED_BY(reading_) = false;
  Mutex mutex_;
  CondVar changed_{&mutex_};
  bool stopping_ GUARDED_BY(mutex_) = false;
  uint64_t next_taken_ GUARDED_BY(mutex_) = 0;
  std::vector<Slot> slots_;  ///< Piece n has number n modulo their count; states by the mutex.
  std::vector<Thread> threads_;
};

}  // namespace nacre
