#include "db/follower/follower_iterator.h"

#include <string>
#include <utility>

#include "db/follower/follower_db.h"
#include "db/read/db_iterator.h"
#include "db/read/view_reads.h"

namespace nacre {
namespace {

class FollowerIterator final : public Iterator {
 public:
  FollowerIterator(FollowerDB* db, const ReadOptions& options, uint32_t family,
                   std::shared_ptr<const FollowerView> view, SequenceNumber snapshot)
      : db_(db), options_(options), family_(family), view_(std::move(view)), snapshot_(snapshot) {
    // They tell whose bytes these are.
    options_.verify_checksums = true;
    Open();
  }

  bool Valid() const override { return failure_.ok() && inner_->Valid(); }
  Status status() const override { return failure_.ok() ? inner_->status() : failure_; }
  Slice key() const override { return inner_->key(); }
  Slice value() const override { return inner_->value(); }

  void SeekToFirst() override {
    Place([this] { inner_->SeekToFirst(); });
  }
  void SeekToLast() override {
    Place([this] { inner_->SeekToLast(); });
  }
  void Seek(const Slice& target) override {
    Place([&] { inner_->Seek(target); });
  }
  void SeekForPrev(const Slice& target) override {
    Place([&] { inner_->SeekForPrev(target); });
  }

  void Next() override {
    SaveKey();
    inner_->Next();
    Repair([this] {
      inner_->Seek(key_);
      if (inner_->Valid() && inner_->key() == Slice(key_)) inner_->Next();
    });
  }
  void Prev() override {
    SaveKey();
    inner_->Prev();
    Repair([this] {
      inner_->SeekForPrev(key_);
      if (inner_->Valid() && inner_->key() == Slice(key_)) inner_->Prev();
    });
  }

 private:
  void Open() { inner_ = NewUserIterator(view_->Of(family_), snapshot_, options_); }
  void SaveKey() {
    const Slice key = inner_->key();
    key_.assign(key.data(), key.size());
  }

  template <typename Move>
  void Place(const Move& move) {
    failure_ = Status::OK();
    move();
    Repair(move);
    shown_ = shown_ || status().ok();
  }

  /// Repeats `move` in later views while tables are gone.
  template <typename Move>
  void Repair(const Move& move) {
    if (FollowerDB::Suspect(inner_->status())) [[unlikely]]
      RepairSlowly(move);
  }
  template <typename Move>
  void RepairSlowly(const Move& move) {
    FollowerDB::Attempt attempt(view_, snapshot_, db_->ReadDeadline());
    const bool keep = shown_ || options_.linearizable || options_.snapshot != nullptr;
    do {
      if (!db_->ReadAgain(family_, keep, &attempt, &failure_)) {
        if (failure_.ok()) failure_ = db_->Answer(*view_, family_, inner_->status());
        return;
      }
      view_ = attempt.view;
      snapshot_ = attempt.snapshot;
      Open();
      move();
    } while (FollowerDB::Suspect(inner_->status()));
  }

  FollowerDB* const db_;
  ReadOptions options_;
  const uint32_t family_;
  std::shared_ptr<const FollowerView> view_;
  SequenceNumber snapshot_;
  std::unique_ptr<Iterator> inner_;
  bool shown_ = false;  ///< Something of snapshot_.
  std::string key_;     ///< The key before the last step.
  Status failure_;
};

}  // namespace

std::unique_ptr<Iterator> NewFollowerIterator(FollowerDB* db, const ReadOptions& options,
                                              uint32_t family,
                                              std::shared_ptr<const FollowerView> view,
                                              SequenceNumber snapshot) {
  return std::make_unique<FollowerIterator>(db, options, family, std::move(view), snapshot);
}

}  // namespace nacre
