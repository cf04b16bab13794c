#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/utilities/stackable_db.h"
#include "nacre/write_batch.h"

namespace nacre {

/// A database that does what none may do, so that a test can see it found out; or one whose owner
/// is fenced at some moment, which any may be.
class FaultyDB final : public StackableDB {
 public:
  enum class Fault : uint8_t {
    kStaleGets,  ///< From time to time Get answers as of when this object was made.
    /// A batch is written key by key, if possible with a read of another client in between.
    kTornBatches,
    kLostWrites,  ///< From time to time a write is acknowledged and forgotten.
    /// From some write on all answer Fenced; every other one of the writes takes effect none the
    /// less.
    kFenced,
  };

  FaultyDB(std::shared_ptr<DB> db, Fault fault)
      : StackableDB(std::move(db)), fault_(fault), old_(db_->GetSnapshot()) {}
  ~FaultyDB() override { db_->ReleaseSnapshot(old_); }

  using StackableDB::Delete;
  using StackableDB::Get;
  using StackableDB::MultiGet;
  using StackableDB::Put;
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override {
    WriteBatch batch;
    NACRE_RETURN_IF_ERROR(batch.Put(family, key, value));
    return Write(options, &batch);
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                const Slice& key) override {
    WriteBatch batch;
    NACRE_RETURN_IF_ERROR(batch.Delete(family, key));
    return Write(options, &batch);
  }
  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    const uint64_t number = writes_.fetch_add(1);
    switch (fault_) {
      case Fault::kTornBatches: {
        OneByOne one_by_one(this, options);
        return updates->Iterate(&one_by_one);
      }
      case Fault::kLostWrites:
        return number % kSeldom == kSeldom - 1 ? Status::OK() : db_->Write(options, updates);
      case Fault::kFenced:
        if (number < kFencedAt) return db_->Write(options, updates);
        if (number % 2 == 0) NACRE_RETURN_IF_ERROR(db_->Write(options, updates));
        return Status::Fenced("by the test");
      default:
        return db_->Write(options, updates);
    }
  }

  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value) override {
    if (IsFenced()) return Status::Fenced("by the test");
    ReadOptions old = options;
    const bool seldom = reads_.fetch_add(1) % kSeldom == kSeldom - 1;
    if (fault_ == Fault::kStaleGets && seldom) old.snapshot = old_;
    return db_->Get(old, family, key, value);
  }
  void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                const Slice* keys, PinnableSlice* values, Status* statuses) override {
    db_->MultiGet(options, family, num_keys, keys, values, statuses);
    reads_.fetch_add(1);
    for (size_t i = 0; IsFenced() && i < num_keys; ++i) statuses[i] = Status::Fenced("by the test");
  }

  /// By the MultiGet of one family, which is faulty.
  std::vector<Status> MultiGet(const ReadOptions& options,
                               const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    return DB::MultiGet(options, families, keys, values);
  }

 private:
  static constexpr uint64_t kSeldom = 200;
  static constexpr uint64_t kFencedAt = 1000;

  class OneByOne final : public WriteBatch::Handler {
   public:
    OneByOne(FaultyDB* faulty, const WriteOptions& options) : faulty_(faulty), options_(options) {}
    void Put(const Slice& key, const Slice& value) override {
      faulty_->db_->Put(options_, key, value).IgnoreError();
      faulty_->LetOthersRead();
    }
    void Delete(const Slice& key) override {
      faulty_->db_->Delete(options_, key).IgnoreError();
      faulty_->LetOthersRead();
    }

   private:
    FaultyDB* const faulty_;
    const WriteOptions options_;
  };

  void LetOthersRead() {
    const uint64_t before = reads_.load();
    for (int i = 0; i < 50 && reads_.load() == before; ++i) std::this_thread::yield();
  }
  bool IsFenced() const { return fault_ == Fault::kFenced && writes_.load() > kFencedAt; }

  const Fault fault_;
  const Snapshot* const old_;
  std::atomic<uint64_t> writes_{0};
  std::atomic<uint64_t> reads_{0};  ///< Gets and MultiGets.
};

}  // namespace nacre
