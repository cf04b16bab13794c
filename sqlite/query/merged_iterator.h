#pragma once

#include <memory>
#include <string>

#include "nacre/iterator.h"
#include "sqlite/overlay.h"
#include "sqlite/transaction.h"

namespace nacre::sqlite {

/// The keys of a range as a transaction sees them: those of its state, with its own writes over
/// them, forwards or backwards. Writes made while it stands are seen if they lie ahead.
///
/// Thread safety: none.
class MergedIterator {
 public:
  MergedIterator() = default;
  ~MergedIterator() { Close(); }
  MergedIterator(const MergedIterator&) = delete;
  MergedIterator& operator=(const MergedIterator&) = delete;

  /// Goes to the first key of [begin, end), or to the last one if `backwards`.
  /// Both with the space; all of the range is in one.
  void Open(const ReadView& view, std::string begin, std::string end, bool backwards);
  void Close();

  bool Valid() const { return valid_; }
  /// Requires Valid().
  void Next();
  /// Excludes the space. Both are valid until `Next`.
  Slice key() const { return from_overlay_ ? OwnKey() : stored_key_; }
  Slice value() const { return from_overlay_ ? own_->second.value : stored_->value(); }
  Status status() const;

 private:
  Slice OwnKey() const;
  /// Sets `stored_key_`, too.
  bool StoredInRange();
  bool OwnInRange() const;
  void StepStored() { backwards_ ? stored_->Prev() : stored_->Next(); }
  void StepOwn();
  /// Moves to the first own write at or behind `key`, or strictly behind it.
  void SeekOwn(const Slice& key, bool strictly);
  void SeekStart();
  /// Decides which of the two stands first, past what was deleted.
  void ChooseCurrent();

  ReadView view_;
  /// The family of `stored_`, which the view holds. Null: it is gone, which `status` says.
  const Family* family_ = nullptr;
  std::unique_ptr<Iterator> stored_;
  Slice stored_key_;  ///< Where that stands, if it is in the range.
  std::string begin_;
  std::string end_;
  bool ends_with_family_ = false;  ///< No key of the space is behind `end_`.
  bool backwards_ = false;
  bool valid_ = false;
  bool from_overlay_ = false;
  Overlay::Map::const_iterator own_;
  bool own_valid_ = false;  ///< `own_` is at an entry.
  uint64_t version_ = 0;    ///< The overlay's version when `own_` was placed.
  std::string here_;
};

}  // namespace nacre::sqlite
