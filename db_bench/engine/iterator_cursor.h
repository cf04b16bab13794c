#pragma once

#include <memory>
#include <utility>

#include "db_bench/engine/engine.h"
#include "db_bench/engine/engine_status.h"

namespace nacre::bench {

/// A `Cursor` over an iterator with the methods that LevelDB gave to all three engines.
template <typename Iterator>
class IteratorCursor final : public Cursor {
 public:
  void Reset(std::unique_ptr<Iterator> iterator) { iterator_ = std::move(iterator); }

  bool SeekToFirst() override {
    iterator_->SeekToFirst();
    return Arrive();
  }
  bool SeekToLast() override {
    iterator_->SeekToLast();
    return Arrive();
  }
  bool Seek(const Slice& target) override {
    iterator_->Seek({target.data(), target.size()});
    return Arrive();
  }
  bool Next() override {
    iterator_->Next();
    return Arrive();
  }
  bool Prev() override {
    iterator_->Prev();
    return Arrive();
  }
  Slice value() override {
    const auto value = iterator_->value();
    return {value.data(), value.size()};
  }
  Status status() override { return ToStatus(iterator_->status()); }

 private:
  bool Arrive() {
    if (!iterator_->Valid()) return false;
    const auto key = iterator_->key();
    key_ = Slice(key.data(), key.size());
    return true;
  }

  std::unique_ptr<Iterator> iterator_;
};

}  // namespace nacre::bench
