#include "archive/log_read_ahead.h"

#include <utility>

#include "util/exceptions.h"

namespace nacre {
namespace {

constexpr uint64_t kPieceBytes = 8 << 20;
/// Pieces that are there while each thread is at one: one is taken, one is to be taken next.
constexpr size_t kPiecesAhead = 2;

}  // namespace

LogReadAhead::LogReadAhead(std::vector<LogFileInfo> files, Sealing sealing, size_t threads)
    : files_(std::move(files)), sealing_(std::move(sealing)), slots_(threads + kPiecesAhead) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back("nacre-ahead", [this] { Run(); });
}

LogReadAhead::~LogReadAhead() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (Thread& thread : threads_) thread.Join();
}

Status LogReadAhead::Next(const std::vector<ArchivedBatch>** batches) {
  *batches = nullptr;
  MutexLock lock(&mutex_);
  if (next_taken_ > 0) {
    slots_[(next_taken_ - 1) % slots_.size()].state = Slot::State::kFree;
    changed_.SignalAll();
  }
  Slot& slot = slots_[next_taken_++ % slots_.size()];
  while (slot.state != Slot::State::kDone) changed_.Wait();
  NACRE_RETURN_IF_ERROR(slot.status);
  if (!slot.end) *batches = &slot.batches;
  return Status::OK();
}

void LogReadAhead::Run() {
  for (Slot* slot = Read(); slot != nullptr; slot = Read()) {
    Finish(slot, CatchAll([slot] { return CheckPiece(&slot->piece, &slot->batches); }),
           /*end=*/false);
  }
}

LogReadAhead::Slot* LogReadAhead::Read() {
  MutexLock reading(&reading_);
  if (ended_) return nullptr;
  Slot& slot = slots_[next_read_ % slots_.size()];
  {
    MutexLock lock(&mutex_);
    while (slot.state != Slot::State::kFree && !stopping_) changed_.Wait();
    if (stopping_) return nullptr;
    slot.state = Slot::State::kBusy;
  }
  ++next_read_;
  bool end = false;
  Status status = CatchAll([&]() REQUIRES(reading_) { return ReadPiece(&slot.piece, &end); });
  if (status.ok() && !end) return &slot;
  ended_ = true;
  Finish(&slot, std::move(status), end);
  return nullptr;
}

Status LogReadAhead::ReadPiece(LogPiece* piece, bool* end) {
  for (;;) {
    if (reader_ == nullptr) {
      *end = next_file_ == files_.size();
      if (*end) return Status::OK();
      NACRE_RETURN_IF_ERROR(LogFileReader::OpenListed(files_[next_file_++], sealing_, &reader_));
    }
    NACRE_RETURN_IF_ERROR(reader_->NextPiece(kPieceBytes, piece));
    if (piece->size > 0) return Status::OK();
    reader_.reset();
  }
}

void LogReadAhead::Finish(Slot* slot, Status status, bool end) {
  MutexLock lock(&mutex_);
  slot->status = std::move(status);
  slot->end = end;
  slot->state = Slot::State::kDone;
  changed_.SignalAll();
}

}  // namespace nacre
