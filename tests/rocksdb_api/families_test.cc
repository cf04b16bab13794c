// Goal: column families, merge operators, ranges of deletions, single deletions and compaction
// filters of a rocksdb::DB* do the same over Nacre as over RocksDB.
// Method: as program_test.cc: one program, whose updates are drawn from a seed, writes down what it
// is answered; both transcripts must be equal. Of failures the code counts: their texts differ.

#include <gtest/gtest.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "adapters/rocksdb/nacre_rocksdb.h"
#include "tests/rocksdb_api/both_databases.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rocksdb_api {
namespace {

/// An order of operands that shows. "=x" replaces all that was before, as an operand that is the
/// result itself.
class StringAppendOperator final : public rocksdb::MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    const rocksdb::Slice& last = in.operand_list.back();
    if (last.starts_with("=")) {
      out->existing_operand = last;
      return true;
    }
    out->new_value = in.existing_value == nullptr ? "" : in.existing_value->ToString();
    for (const rocksdb::Slice& operand : in.operand_list) {
      if (operand.starts_with("=")) out->new_value.clear();
      out->new_value += operand.ToString();
    }
    return true;
  }
  // One of the nodes' operators has this name.
  const char* Name() const override { return "StringAppendOperator"; }
};

class AddOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* sum, rocksdb::Logger*) const override {
    const int before = existing == nullptr ? 0 : std::stoi(existing->ToString());
    *sum = std::to_string(before + std::stoi(value.ToString()));
    return true;
  }
  const char* Name() const override { return "AddOperator"; }
};

/// Removes what begins with "old", and makes "upper" of "lower".
class ExpiryFilter final : public rocksdb::CompactionFilter {
 public:
  bool Filter(int, const rocksdb::Slice&, const rocksdb::Slice& value, std::string* new_value,
              bool* value_changed) const override {
    if (value == "lower") {
      *new_value = "upper";
      *value_changed = true;
    }
    return value.starts_with("old");
  }
  const char* Name() const override { return "ExpiryFilter"; }
};

class ExpiryFactory final : public rocksdb::CompactionFilterFactory {
 public:
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context&) override {
    return std::make_unique<ExpiryFilter>();
  }
  const char* Name() const override { return "ExpiryFactory"; }
};

/// Opens, with these families, one of the two databases; the last one is left.
using OpenFamilies = std::function<rocksdb::Status(
    const rocksdb::DBOptions&, const std::vector<rocksdb::ColumnFamilyDescriptor>&,
    std::vector<rocksdb::ColumnFamilyHandle*>*, rocksdb::DB**)>;

/// What an application with several families does; knows nothing of Nacre.
class FamiliesProgram {
 public:
  FamiliesProgram(OpenFamilies open, const rocksdb::Options& options, uint64_t seed)
      : open_(std::move(open)), options_(options), random_(seed) {}

  std::string Run() {
    options_.create_missing_column_families = true;
    families_ = {{rocksdb::kDefaultColumnFamilyName, With<StringAppendOperator>()},
                 {"sums", With<AddOperator>()},
                 {"backwards", With<StringAppendOperator>()}};
    families_.back().options.comparator = rocksdb::ReverseBytewiseComparator();
    if (!OpenAll()) return text_.str();
    Update(1500);
    Look("memtables", rocksdb::ReadOptions());
    const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
    Note("flush one", db_->Flush(rocksdb::FlushOptions(), handles_[1]));
    Update(1500);
    Note("flush all", db_->Flush(rocksdb::FlushOptions(), handles_));
    Update(500);
    rocksdb::ReadOptions then;
    then.snapshot = snapshot;
    Look("snapshot", then);
    for (rocksdb::ColumnFamilyHandle* family : handles_) {
      Note("compact", db_->CompactRange(rocksdb::CompactRangeOptions(), family, nullptr, nullptr));
    }
    Look("compacted", rocksdb::ReadOptions());
    Look("snapshot after compaction", then);
    db_->ReleaseSnapshot(snapshot);
    MakeAndDrop();
    ChangeOptions();
    Reopen();
    Look("reopened", rocksdb::ReadOptions());
    Expire();
    CloseAll();
    return text_.str();
  }

 private:
  template <typename Operator>
  rocksdb::ColumnFamilyOptions With() const {
    rocksdb::ColumnFamilyOptions options = options_;
    options.merge_operator = std::make_shared<Operator>();
    return options;
  }
  void Note(const std::string& what, const rocksdb::Status& status) {
    text_ << what << ": " << static_cast<int>(status.code()) << "\n";
  }
  bool OpenAll() {
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = open_(options_, families_, &handles_, &db);
    Note("open", status);
    db_.reset(db);
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      text_ << handle->GetID() << " " << handle->GetName() << "\n";
    }
    return status.ok();
  }
  void CloseAll() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      Note("destroy handle", db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    Note("close", db_->Close());
    db_.reset();
  }

  std::string Key() { return "key" + std::to_string(random_.Uniform(800)); }
  /// One for the operator of family `i`, and a value that it takes.
  std::string Operand(size_t i) {
    const std::string number = std::to_string(random_.Uniform(1000));
    return i == 1 || !random_.OneIn(8) ? number : "=" + number;
  }

  void Update(int count) {
    const rocksdb::WriteOptions options;
    for (int n = 0; n < count; ++n) {
      const size_t i = random_.Uniform(handles_.size());
      rocksdb::ColumnFamilyHandle* const family = handles_[i];
      switch (random_.Uniform(10)) {
        case 0:
          Note("delete", db_->Delete(options, family, Key()));
          break;
        case 1: {
          const std::string key = "single" + std::to_string(serial_++);
          Note("put", db_->Put(options, family, key, Operand(i)));
          if (random_.OneIn(2)) Note("single delete", db_->SingleDelete(options, family, key));
          break;
        }
        case 2:
          if (random_.OneIn(4)) DeleteRange(family, i == 2);
          break;
        case 3:
        case 4:
          WriteBatch();
          break;
        case 5:
        case 6:
        case 7:
          Note("merge", db_->Merge(options, family, Key(), Operand(i)));
          break;
        default:
          Note("put", db_->Put(options, family, Key(), Operand(i)));
      }
    }
  }
  void DeleteRange(rocksdb::ColumnFamilyHandle* family, bool backwards) {
    std::string begin = Key();
    std::string end = begin + "9";  // Up to eleven keys.
    if (backwards) std::swap(begin, end);
    Note("delete range", db_->DeleteRange(rocksdb::WriteOptions(), family, begin, end));
  }
  void WriteBatch() {
    rocksdb::WriteBatch batch;
    for (uint64_t n = random_.Uniform(10); n > 0; --n) {
      const size_t i = random_.Uniform(handles_.size());
      const std::string key = Key();
      const std::string operand = Operand(i);
      switch (random_.Uniform(5)) {
        case 0:
          Note("batch", batch.Delete(handles_[i], key));
          break;
        case 1:
          Note("batch", i == 2 ? batch.DeleteRange(handles_[i], key + "9", key)
                               : batch.DeleteRange(handles_[i], key, key + "9"));
          break;
        case 2:
          Note("batch", batch.Put(handles_[i], key, operand));
          break;
        default:
          Note("batch", batch.Merge(handles_[i], key, operand));
      }
    }
    const std::string key = "single" + std::to_string(serial_++);
    Note("batch", batch.Put(handles_[0], key, "once"));
    if (random_.OneIn(2)) Note("batch", batch.SingleDelete(handles_[0], key));
    Note("write", db_->Write(rocksdb::WriteOptions(), &batch));
  }

  void Look(const std::string& what, const rocksdb::ReadOptions& options) {
    text_ << "look " << what << "\n";
    std::vector<rocksdb::Iterator*> iterators;
    Note("iterators", db_->NewIterators(options, handles_, &iterators));
    for (rocksdb::Iterator* made : iterators) {
      const std::unique_ptr<rocksdb::Iterator> iterator(made);
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) Show(iterator.get());
      Note("end", iterator->status());
      for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) Show(iterator.get());
      Note("end", iterator->status());
    }
    LookUp(options);
  }
  void Show(rocksdb::Iterator* iterator) {
    text_ << iterator->key().ToString() << "=" << iterator->value().ToString() << "\n";
  }
  void LookUp(const rocksdb::ReadOptions& options) {
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    std::vector<std::string> keys(60);
    for (std::string& key : keys) {
      key = Key();
      families.push_back(handles_[random_.Uniform(handles_.size())]);
      std::string value;
      const rocksdb::Status status = db_->Get(options, families.back(), key, &value);
      Note("get " + value, status);
      // False says that there is none; true says nothing.
      if (status.ok()) text_ << db_->KeyMayExist(options, families.back(), key, &value) << "\n";
    }
    const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<std::string> values;
    const std::vector<rocksdb::Status> statuses = db_->MultiGet(options, families, slices, &values);
    for (size_t i = 0; i < slices.size(); ++i) Note("of many " + values[i], statuses[i]);
    std::array<rocksdb::PinnableSlice, 60> pinned;
    std::array<rocksdb::Status, 60> answers;
    db_->MultiGet(options, handles_[1], slices.size(), slices.data(), pinned.data(),
                  answers.data());
    for (size_t i = 0; i < slices.size(); ++i) {
      Note("of a batch " + (answers[i].ok() ? pinned[i].ToString() : ""), answers[i]);
    }
  }

  void MakeAndDrop() {
    rocksdb::ColumnFamilyHandle* made = nullptr;
    Note("make", db_->CreateColumnFamily(With<StringAppendOperator>(), "made", &made));
    text_ << made->GetID() << " " << made->GetName() << "\n";
    rocksdb::ColumnFamilyHandle* again = nullptr;
    Note("make again", db_->CreateColumnFamily(With<StringAppendOperator>(), "made", &again));
    Note("put", db_->Put(rocksdb::WriteOptions(), made, "key", "value"));
    Note("drop default", db_->DropColumnFamily(db_->DefaultColumnFamily()));
    Note("drop", db_->DropColumnFamily(made));
    Note("drop again", db_->DropColumnFamily(made));
    Note("put into what was dropped", db_->Put(rocksdb::WriteOptions(), made, "key", "late"));
    std::string value;
    Note("get " + value, db_->Get(rocksdb::ReadOptions(), made, "key", &value));
    Note("destroy", db_->DestroyColumnFamilyHandle(made));
    Note("destroy default", db_->DestroyColumnFamilyHandle(db_->DefaultColumnFamily()));
    std::vector<rocksdb::ColumnFamilyHandle*> several;
    Note("make several", db_->CreateColumnFamilies(With<AddOperator>(), {"x", "y"}, &several));
    Note("drop several", db_->DropColumnFamilies(several));
    // Applications do it like this as well.
    for (auto* handle : several) delete handle;
  }
  void ChangeOptions() {
    Note("set", db_->SetOptions(handles_[1], {{"write_buffer_size", "2097152"}}));
    Note("set nonsense", db_->SetOptions(handles_[1], {{"nonsense", "1"}}));
    for (rocksdb::ColumnFamilyHandle* family : handles_) {
      text_ << db_->GetOptions(family).write_buffer_size << " " << db_->NumberLevels(family)
            << "\n";
      rocksdb::ColumnFamilyDescriptor descriptor;
      Note("describe", family->GetDescriptor(&descriptor));
      text_ << descriptor.name << " " << descriptor.options.write_buffer_size << " "
            << descriptor.options.comparator->Name() << "\n";
    }
  }

  void Reopen() {
    CloseAll();
    options_.create_missing_column_families = false;
    families_.pop_back();
    OpenAll();  // It fails, as it leaves out a family that exists.
    families_.push_back({"backwards", With<StringAppendOperator>()});
    families_.back().options.comparator = rocksdb::ReverseBytewiseComparator();
    families_.push_back({"expiring", options_});
    OpenAll();  // It fails, as one family does not exist.
    families_.pop_back();
    OpenAll();
  }

  void Expire() {
    const ExpiryFilter filter;
    rocksdb::ColumnFamilyOptions options = options_;
    options.compaction_filter = &filter;
    ExpireWith("filter", options);
    options.compaction_filter = nullptr;
    options.compaction_filter_factory = std::make_shared<ExpiryFactory>();
    ExpireWith("factory", options);
  }
  void ExpireWith(const std::string& name, const rocksdb::ColumnFamilyOptions& options) {
    rocksdb::ColumnFamilyHandle* family = nullptr;
    Note("make", db_->CreateColumnFamily(options, name, &family));
    const std::array<std::string, 4> kValues = {"old", "lower", "new", "older"};
    for (int i = 0; i < 200; ++i) {
      Note("put", db_->Put(rocksdb::WriteOptions(), family, Key(),
                           kValues[random_.Uniform(kValues.size())]));
    }
    Note("compact", db_->CompactRange(rocksdb::CompactRangeOptions(), family, nullptr, nullptr));
    {
      const std::unique_ptr<rocksdb::Iterator> iterator(
          db_->NewIterator(rocksdb::ReadOptions(), family));
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) Show(iterator.get());
      Note("end", iterator->status());
    }
    // The filter does not outlive the family.
    Note("drop", db_->DropColumnFamily(family));
    Note("destroy", db_->DestroyColumnFamilyHandle(family));
  }

  const OpenFamilies open_;
  rocksdb::Options options_;
  Random random_;
  int serial_ = 0;
  std::ostringstream text_;
  std::vector<rocksdb::ColumnFamilyDescriptor> families_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<rocksdb::DB> db_;
};

class FamiliesTest : public BothDatabases {
 protected:
  OpenFamilies OnNacre() {
    return [this](const auto& options, const auto& families, auto* handles, rocksdb::DB** db) {
      std::unique_ptr<rocksdb::DB> opened;
      rocksdb::Status status =
          Open(options, nacre_options_, "families", families, handles, &opened);
      *db = opened.release();
      return status;
    };
  }
  OpenFamilies OnRocksdb() {
    return
        [this](rocksdb::DBOptions options, const auto& families, auto* handles, rocksdb::DB** db) {
          options.env = memory_.get();
          return rocksdb::DB::Open(options, "/families", families, handles, db);
        };
  }
};

TEST_F(FamiliesTest, ProgramDoesTheSameOnBoth) {
  const uint64_t seed = TestSeed(20260104);
  const std::string expected = FamiliesProgram(OnRocksdb(), options_, seed).Run();
  EXPECT_GT(expected.size(), 100000U);
  EXPECT_EQ(FirstDifference(FamiliesProgram(OnNacre(), options_, seed).Run(), expected), "");

  std::vector<std::string> ours;
  ASSERT_TRUE(ListColumnFamilies(nacre_options_, "families", &ours).ok());
  std::vector<std::string> theirs;
  rocksdb::DBOptions options;
  options.env = memory_.get();
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(options, "/families", &theirs).ok());
  EXPECT_EQ(ours, theirs);
  EXPECT_TRUE(ListColumnFamilies(nacre_options_, "missing", &ours).IsNotFound());
}

TEST_F(FamiliesTest, NullIsNoFamily) {
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  rocksdb::DB* const db = nacre_db_.get();
  rocksdb::ColumnFamilyHandle* const none = nullptr;
  const rocksdb::WriteOptions write;
  const rocksdb::ReadOptions read;
  std::string value;
  EXPECT_TRUE(db->Put(write, none, "a", "1").IsInvalidArgument());
  EXPECT_TRUE(db->Delete(write, none, "a").IsInvalidArgument());
  EXPECT_TRUE(db->SingleDelete(write, none, "a").IsInvalidArgument());
  EXPECT_TRUE(db->DeleteRange(write, none, "a", "b").IsInvalidArgument());
  EXPECT_TRUE(db->Merge(write, none, "a", "1").IsInvalidArgument());
  EXPECT_TRUE(db->Get(read, none, "a", &value).IsInvalidArgument());
  EXPECT_TRUE(db->Flush(rocksdb::FlushOptions(), none).IsInvalidArgument());
  EXPECT_TRUE(db->DropColumnFamily(none).IsInvalidArgument());
  const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(read, none));
  EXPECT_TRUE(iterator->status().IsInvalidArgument());
}

TEST_F(FamiliesTest, PropertiesAreOfAFamily) {
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  rocksdb::DB* const db = nacre_db_.get();
  rocksdb::ColumnFamilyHandle* made = nullptr;
  ASSERT_TRUE(db->CreateColumnFamily(options_, "made", &made).ok());
  const std::unique_ptr<rocksdb::ColumnFamilyHandle> family(made);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(db->Put({}, family.get(), "key" + std::to_string(i), "value").ok());
  }
  uint64_t keys = 0;
  ASSERT_TRUE(db->GetIntProperty(family.get(), "rocksdb.estimate-num-keys", &keys));
  EXPECT_EQ(keys, 100U);
  ASSERT_TRUE(db->GetIntProperty("rocksdb.estimate-num-keys", &keys));
  EXPECT_EQ(keys, 0U);
  ASSERT_TRUE(db->GetAggregatedIntProperty("rocksdb.estimate-num-keys", &keys));
  EXPECT_EQ(keys, 100U);
  ASSERT_TRUE(db->Flush({}, family.get()).ok());
  const rocksdb::Range all("a", "z");
  uint64_t in_family = 0;
  uint64_t in_default = 1;
  ASSERT_TRUE(db->GetApproximateSizes(family.get(), &all, 1, &in_family).ok());
  ASSERT_TRUE(db->GetApproximateSizes(&all, 1, &in_default).ok());
  EXPECT_GT(in_family, 0U);
  EXPECT_EQ(in_default, 0U);
}

}  // namespace
}  // namespace nacre::rocksdb_api
