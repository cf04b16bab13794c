#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "nacre/db.h"
#include "tests/support/model/model_db.h"
#include "util/random.h"

namespace nacre {

/// Bounds of an iterator; none: open.
struct IteratorBounds {
  std::optional<std::string> lower;
  std::optional<std::string> upper;
};

/// An iterator of a database beside the pairs that it has to show.
class CheckedIterator {
 public:
  /// `expected`: what `model.Visible` answers for the snapshot and the bounds.
  CheckedIterator(DB* db, const Comparator* comparator, const Snapshot* snapshot,
                  IteratorBounds bounds, ModelDB::Pairs expected);

  /// One random move; `some_key` is where a seek may go to.
  testing::AssertionResult Step(Random* random, const std::string& some_key);
  /// From one end to the other.
  testing::AssertionResult Scan(bool forward);

 private:
  testing::AssertionResult Check() const;
  void Seek(const std::string& target, bool forward);

  const Comparator* const comparator_;
  const IteratorBounds bounds_;
  const Slice lower_;  ///< Views of the bounds, which the iterator looks at with each seek.
  const Slice upper_;
  const ModelDB::Pairs expected_;
  std::unique_ptr<Iterator> iterator_;
  size_t at_ = SIZE_MAX;  ///< In expected_; past its end: not valid.
  std::string last_move_;
};

}  // namespace nacre
