#include "sqlite/read_state.h"

#include <utility>

namespace nacre::sqlite {
namespace {

/// More cursors at once than this are rare, and an iterator has a buffer.
constexpr size_t kIdleMax = 16;

}  // namespace

ReadState::ReadState(DB* db, uint64_t number, std::shared_ptr<const FamilySet> families,
                     uint64_t schema_version)
    : db_(db),
      number_(number),
      families_(std::move(families)),
      schema_version_(schema_version),
      snapshot_(db->GetSnapshot()) {
  options_.snapshot = snapshot_;
}

ReadState::~ReadState() {
  {
    MutexLock lock(&mutex_);
    idle_.clear();
  }
  db_->ReleaseSnapshot(snapshot_);
}

Status ReadState::Get(const Family& family, const Slice& key, PinnableSlice* value) const {
  return db_->Get(options_, family.handle(), key, value);
}

void ReadState::MultiGet(const Family& family, const std::vector<Slice>& keys,
                         PinnableSlice* values, Status* statuses) const {
  db_->MultiGet(options_, family.handle(), keys.size(), keys.data(), values, statuses);
}

std::unique_ptr<Iterator> ReadState::TakeIterator(const Family& family) {
  {
    MutexLock lock(&mutex_);
    for (Idle& idle : idle_) {
      if (idle.space != family.space()) continue;
      std::unique_ptr<Iterator> iterator = std::move(idle.iterator);
      idle = std::move(idle_.back());
      idle_.pop_back();
      return iterator;
    }
  }
  return db_->NewIterator(options_, family.handle());
}

void ReadState::GiveBack(const Family& family, std::unique_ptr<Iterator> iterator) {
  MutexLock lock(&mutex_);
  if (idle_.size() < kIdleMax && iterator->status().ok()) {
    idle_.push_back({family.space(), std::move(iterator)});
  }
}

}  // namespace nacre::sqlite
