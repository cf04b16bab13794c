#include "sqlite/read_state.h"

#include <utility>

namespace nacre::sqlite {
namespace {

/// More cursors at once than this are rare, and an iterator has a buffer.
constexpr size_t kIdleMax = 8;

}  // namespace

ReadState::ReadState(DB* db, uint64_t number)
    : db_(db), number_(number), snapshot_(db->GetSnapshot()) {
  options_.snapshot = snapshot_;
}

ReadState::~ReadState() {
  {
    MutexLock lock(&mutex_);
    idle_.clear();
  }
  db_->ReleaseSnapshot(snapshot_);
}

Status ReadState::Get(const Slice& key, PinnableSlice* value) const {
  return db_->Get(options_, key, value);
}

void ReadState::MultiGet(const std::vector<Slice>& keys, PinnableSlice* values,
                         Status* statuses) const {
  db_->MultiGet(options_, keys.size(), keys.data(), values, statuses);
}

std::unique_ptr<Iterator> ReadState::TakeIterator() {
  {
    MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Iterator> iterator = std::move(idle_.back());
      idle_.pop_back();
      return iterator;
    }
  }
  return db_->NewIterator(options_);
}

void ReadState::GiveBack(std::unique_ptr<Iterator> iterator) {
  MutexLock lock(&mutex_);
  if (idle_.size() < kIdleMax && iterator->status().ok()) idle_.push_back(std::move(iterator));
}

}  // namespace nacre::sqlite
