#include "sqlite/read_state.h"

#include <algorithm>
#include <utility>

namespace nacre::sqlite {
namespace {

/// More cursors at once than this are rare, and an iterator has a buffer.
constexpr size_t kIdleMax = 16;

/// What cannot be read.
class FailedIterator final : public Iterator {
 public:
  explicit FailedIterator(Status status) : status_(std::move(status)) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice& /*target*/) override {}
  void SeekForPrev(const Slice& /*target*/) override {}
  void Next() override {}
  void Prev() override {}
  Slice key() const override { return {}; }
  Slice value() const override { return {}; }
  Status status() const override { return status_; }

 private:
  const Status status_;
};

Status NoSnapshot() {
  return Status::Unavailable("no state of the database can be had to be read");
}

}  // namespace

ReadState::ReadState(DB* db, std::shared_ptr<const Snapshot> snapshot, uint64_t id,
                     std::shared_ptr<const FamilySet> families, uint64_t number)
    : db_(db),
      snapshot_(std::move(snapshot)),
      id_(id),
      families_(std::move(families)),
      number_(number) {
  options_.snapshot = snapshot_.get();
}

ReadState::~ReadState() {
  MutexLock lock(&mutex_);
  idle_.clear();
}

Status ReadState::Explain(Status status) const {
  const bool moved = status.IsAborted() && families_->begin()->second->has_all_spaces();
  return moved ? Status::Busy(status.message()) : status;
}

Status ReadState::Get(const Family& family, const Slice& key, PinnableSlice* value) const {
  if (snapshot_ == nullptr) return NoSnapshot();
  return Explain(db_->Get(options_, family.handle(), family.KeyIn(key), value));
}

void ReadState::MultiGet(const Family& family, const std::vector<Slice>& keys,
                         PinnableSlice* values, Status* statuses) const {
  if (snapshot_ == nullptr) {
    std::fill_n(statuses, keys.size(), NoSnapshot());
    return;
  }
  std::vector<Slice> stored;
  stored.reserve(keys.size());
  for (const Slice& key : keys) stored.push_back(family.KeyIn(key));
  db_->MultiGet(options_, family.handle(), stored.size(), stored.data(), values, statuses);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!statuses[i].ok()) statuses[i] = Explain(std::move(statuses[i]));
  }
}

std::unique_ptr<Iterator> ReadState::TakeIterator(const Family& family) {
  if (snapshot_ == nullptr) return std::make_unique<FailedIterator>(NoSnapshot());
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
