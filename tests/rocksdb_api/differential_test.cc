// Goal: whatever an application asks of a rocksdb::DB in whatever order, Nacre answers as RocksDB
// does: values, what iterators show in both directions, and the codes of failures.
// Method: operations drawn from a seed are carried out on a RocksDB in a folder and on a Nacre
// database, one after the other, with the same families, snapshots, iterators and reopenings; the
// first answers that differ end the test, with the number of the operation. What RocksDB leaves
// undefined is not asked for: a SingleDelete is of a key that was put once.

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/utilities/write_batch_with_index.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/rocksdb/nacre_rocksdb.h"
#include "nacre/pool.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "util/random.h"

namespace nacre::rocksdb_api {
namespace {

/// An order of operands that shows. "=x" is the result itself, as a choice among the operands.
class AppendOperator final : public rocksdb::MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    if (in.operand_list.back().starts_with("=")) {
      out->existing_operand = in.operand_list.back();
      return true;
    }
    out->new_value = in.existing_value == nullptr ? "" : in.existing_value->ToString();
    for (const rocksdb::Slice& operand : in.operand_list) {
      if (operand.starts_with("=")) out->new_value.clear();
      out->new_value += operand.ToString();
    }
    return true;
  }
  const char* Name() const override { return "AppendOperator"; }
};

/// A pair of iterators, one of each database, whose bounds may be changed.
struct IteratorPair {
  std::string lower_text;
  std::string upper_text;
  std::array<rocksdb::Slice, 2> lower;
  std::array<rocksdb::Slice, 2> upper;
  std::array<std::unique_ptr<rocksdb::Iterator>, 2> iterators;
  bool refreshes = true;
  bool tails = false;
};

class Differential {
 public:
  Differential(nacre::Options nacre_options, std::string folder, uint64_t seed)
      : nacre_options_(std::move(nacre_options)), folder_(std::move(folder)), random_(seed) {
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.write_buffer_size = 64 << 10;
    options_.level0_file_num_compaction_trigger = 2;
    options_.target_file_size_base = 64 << 10;
    options_.max_bytes_for_level_base = 256 << 10;
    options_.compression = rocksdb::kNoCompression;
    options_.merge_operator = std::make_shared<AppendOperator>();
    names_ = {rocksdb::kDefaultColumnFamilyName, "more", "backwards"};
  }
  ~Differential() { CloseAll(); }

  void Run(size_t operations) {
    Reopen();
    for (number_ = 1; number_ <= operations && !testing::Test::HasFailure(); ++number_) Step();
    if (!testing::Test::HasFailure()) LookAtAll();
  }

 private:
  using Answer = std::function<std::string(size_t which)>;

  /// RocksDB's tailing iterators do not know deletions of ranges.
  static constexpr size_t kWithoutRanges = 1;

  /// The same on both; `which` is 0 for Nacre, 1 for RocksDB.
  void Both(const std::string& what, const Answer& answer) {
    const std::string ours = answer(0);
    const std::string theirs = answer(1);
    if (ours == theirs) return;
    ADD_FAILURE() << "operation " << number_ << ", " << what << ": " << ours
                  << ", RocksDB: " << theirs;
  }
  static std::string CodeOf(const rocksdb::Status& status) { return std::to_string(status.code()); }

  // ---- Opening ------------------------------------------------------------------------------

  rocksdb::ColumnFamilyOptions OptionsOf(const std::string& name) const {
    rocksdb::ColumnFamilyOptions options = options_;
    if (name == "backwards") options.comparator = rocksdb::ReverseBytewiseComparator();
    return options;
  }
  void CloseAll() {
    pairs_.clear();
    for (size_t which = 0; which < 2; ++which) {
      if (dbs_[which] == nullptr) continue;
      for (const auto& snapshot : snapshots_) dbs_[which]->ReleaseSnapshot(snapshot[which]);
      for (rocksdb::ColumnFamilyHandle* handle : handles_[which]) {
        (void)dbs_[which]->DestroyColumnFamilyHandle(handle);
      }
      handles_[which].clear();
      EXPECT_TRUE(dbs_[which]->Close().ok());
      dbs_[which].reset();
    }
    snapshots_.clear();
  }
  void Reopen() {
    CloseAll();
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names_) families.emplace_back(name, OptionsOf(name));
    Both("open", [&](size_t which) {
      if (which == 0) {
        return CodeOf(
            Open(options_, nacre_options_, "differential", families, &handles_[0], &dbs_[0]));
      }
      rocksdb::DB* db = nullptr;
      const rocksdb::Status status =
          rocksdb::DB::Open(options_, folder_ + "/db", families, &handles_[1], &db);
      dbs_[1].reset(db);
      return CodeOf(status);
    });
  }

  // ---- What operations are about --------------------------------------------------------------

  size_t Family() { return random_.Uniform(names_.size()); }
  std::string Key() { return "k" + std::to_string(random_.Uniform(400)); }
  std::string Value() {
    const std::string number = std::to_string(random_.Next());
    if (random_.OneIn(10)) return "=" + number;
    return number + std::string(random_.Uniform(200), 'x');
  }
  rocksdb::WriteOptions Writing() {
    rocksdb::WriteOptions options;
    options.sync = random_.OneIn(20);
    options.ignore_missing_column_families = random_.OneIn(4);
    return options;
  }
  /// With one of the snapshots, or none, for each of the two.
  std::array<rocksdb::ReadOptions, 2> Reading() {
    std::array<rocksdb::ReadOptions, 2> options;
    if (snapshots_.empty() || random_.OneIn(2)) return options;
    const auto& snapshot = snapshots_[random_.Uniform(snapshots_.size())];
    for (size_t which = 0; which < 2; ++which) options[which].snapshot = snapshot[which];
    return options;
  }

  void Step() {
    switch (random_.Uniform(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return Put();
      case 5:
        return Delete();
      case 6:
        return PutOnceAndDelete();
      case 7:
        return DeleteRange();
      case 8:
      case 9:
        return Merge();
      case 10:
      case 11:
        return WriteBatch();
      case 12:
      case 13:
        return Get();
      case 14:
        return MultiGet();
      case 15:
        return MakeIterator();
      case 16:
      case 17:
      case 18:
      case 19:
        return MoveIterator();
      case 20:
        return TakeOrGiveSnapshot();
      case 21:
        return ReadThroughBatch();
      case 22:
        return Maintain();
      default:
        return random_.OneIn(8) ? Rarely() : Get();
    }
  }

  // ---- Writes -------------------------------------------------------------------------------

  void Put() {
    const size_t family = Family();
    const std::string key = Key();
    const std::string value = Value();
    const rocksdb::WriteOptions options = Writing();
    Both("put", [&](size_t which) {
      return CodeOf(dbs_[which]->Put(options, handles_[which][family], key, value));
    });
  }
  void Delete() {
    const size_t family = Family();
    const std::string key = Key();
    Both("delete", [&](size_t which) {
      return CodeOf(dbs_[which]->Delete({}, handles_[which][family], key));
    });
  }
  void PutOnceAndDelete() {
    const size_t family = Family();
    const std::string key = "once" + std::to_string(serial_++);
    const bool deleted = random_.OneIn(2);
    Both("single delete", [&](size_t which) {
      std::string codes = CodeOf(dbs_[which]->Put({}, handles_[which][family], key, "1"));
      if (deleted) codes += CodeOf(dbs_[which]->SingleDelete({}, handles_[which][family], key));
      return codes;
    });
  }
  void DeleteRange() {
    const size_t family = Family();
    if (family == kWithoutRanges) return;
    std::string begin = Key();
    std::string end = random_.OneIn(4) ? Key() : begin + "9";
    // After a range that ends before it begins a RocksDB takes no writes any more.
    if ((begin > end) != (names_[family] == "backwards")) std::swap(begin, end);
    Both("delete range", [&](size_t which) {
      return CodeOf(dbs_[which]->DeleteRange({}, handles_[which][family], begin, end));
    });
  }
  void Merge() {
    const size_t family = Family();
    const std::string key = Key();
    const std::string operand = Value();
    Both("merge", [&](size_t which) {
      return CodeOf(dbs_[which]->Merge({}, handles_[which][family], key, operand));
    });
  }
  void WriteBatch() {
    const uint64_t seed = random_.Next();
    const rocksdb::WriteOptions options = Writing();
    Both("write", [&](size_t which) {
      Random same(seed);
      rocksdb::WriteBatch batch;
      for (uint64_t n = same.Uniform(12); n > 0; --n) {
        rocksdb::ColumnFamilyHandle* const family = handles_[which][same.Uniform(names_.size())];
        const std::string key = "k" + std::to_string(same.Uniform(400));
        const std::string value = std::to_string(same.Next());
        switch (same.Uniform(4)) {
          case 0:
            EXPECT_TRUE(batch.Delete(family, key).ok());
            break;
          case 1:
            EXPECT_TRUE(batch.Merge(family, key, value).ok());
            break;
          default:
            EXPECT_TRUE(batch.Put(family, key, value).ok());
        }
      }
      return CodeOf(dbs_[which]->Write(options, &batch));
    });
  }

  // ---- Reads --------------------------------------------------------------------------------

  void Get() {
    const size_t family = Family();
    const std::string key = Key();
    const auto options = Reading();
    Both("get", [&](size_t which) {
      std::string value = "untouched";
      const rocksdb::Status status =
          dbs_[which]->Get(options[which], handles_[which][family], key, &value);
      bool found = false;
      std::string maybe;
      // False says that it is not there; true says nothing.
      const bool may =
          dbs_[which]->KeyMayExist(options[which], handles_[which][family], key, &maybe, &found);
      EXPECT_TRUE(may || status.IsNotFound());
      if (may && found) {
        EXPECT_EQ(maybe, value);
      }
      return CodeOf(status) + " " + value;
    });
  }
  void MultiGet() {
    const size_t count = 1 + random_.Uniform(20);
    std::vector<std::string> keys;
    std::vector<size_t> families;
    for (size_t i = 0; i < count; ++i) {
      keys.push_back(Key());
      families.push_back(Family());
    }
    const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    const auto options = Reading();
    Both("multi get", [&](size_t which) {
      std::vector<rocksdb::ColumnFamilyHandle*> of;
      of.reserve(families.size());
      for (const size_t family : families) of.push_back(handles_[which][family]);
      std::vector<std::string> values;
      std::string answer;
      for (const rocksdb::Status& status :
           dbs_[which]->MultiGet(options[which], of, slices, &values)) {
        answer += CodeOf(status) + " ";
      }
      for (const std::string& value : values) answer += value + " ";
      std::vector<rocksdb::PinnableSlice> pinned(count);
      std::vector<rocksdb::Status> statuses(count);
      dbs_[which]->MultiGet(options[which], of.front(), count, slices.data(), pinned.data(),
                            statuses.data());
      for (size_t i = 0; i < count; ++i) {
        answer += CodeOf(statuses[i]) + (statuses[i].ok() ? pinned[i].ToString() : "") + " ";
      }
      return answer;
    });
  }

  static std::string Shown(const rocksdb::Iterator& iterator) {
    if (!iterator.Valid()) return "end " + CodeOf(iterator.status());
    return iterator.key().ToString() + "=" + iterator.value().ToString() + " " +
           std::to_string(iterator.columns().size());
  }
  void MakeIterator() {
    if (pairs_.size() >= 6) pairs_.erase(pairs_.begin());
    const size_t family = Family();
    pairs_.push_back(std::make_unique<IteratorPair>());
    IteratorPair& pair = *pairs_.back();
    auto options = Reading();
    const bool lower = random_.OneIn(2);
    const bool upper = random_.OneIn(2);
    pair.refreshes = options[0].snapshot == nullptr;
    // With bounds a RocksDB's tailing iterators show keys that it has no more.
    pair.tails = pair.refreshes && family == kWithoutRanges && !lower && !upper;
    SetBounds(&pair);
    for (size_t which = 0; which < 2; ++which) {
      if (lower) options[which].iterate_lower_bound = &pair.lower[which];
      if (upper) options[which].iterate_upper_bound = &pair.upper[which];
      options[which].tailing = pair.tails;
      pair.iterators[which].reset(
          dbs_[which]->NewIterator(options[which], handles_[which][family]));
    }
  }
  void SetBounds(IteratorPair* pair) {
    pair->lower_text = Key();
    pair->upper_text = Key();
    pair->lower = {pair->lower_text, pair->lower_text};
    pair->upper = {pair->upper_text, pair->upper_text};
  }
  void MoveIterator() {
    if (pairs_.empty()) return;
    IteratorPair& pair = *pairs_[random_.Uniform(pairs_.size())];
    if (random_.OneIn(10)) SetBounds(&pair);
    const std::string target = Key();
    const uint64_t seek = random_.Uniform(pair.tails ? 2 : 4);
    SCOPED_TRACE((pair.tails ? "tailing, seek " : "seek ") + std::to_string(seek) + " " + target +
                 " in " + pair.lower_text + " to " + pair.upper_text);
    Both("seek", [&](size_t which) {
      rocksdb::Iterator& iterator = *pair.iterators[which];
      if (seek == 0) iterator.SeekToFirst();
      if (seek == 1) iterator.Seek(target);
      if (seek == 2) iterator.SeekToLast();
      if (seek == 3) iterator.SeekForPrev(target);
      return Shown(iterator);
    });
    for (uint64_t n = random_.Uniform(20); n > 0 && pair.iterators[1]->Valid(); --n) {
      const bool forward = pair.tails || random_.OneIn(2);
      if (testing::Test::HasFailure()) return;
      Both(forward ? "next" : "prev", [&](size_t which) {
        forward ? pair.iterators[which]->Next() : pair.iterators[which]->Prev();
        return Shown(*pair.iterators[which]);
      });
    }
    if (pair.tails || !random_.OneIn(10)) return;
    Both("refresh", [&](size_t which) { return CodeOf(pair.iterators[which]->Refresh()); });
  }
  void TakeOrGiveSnapshot() {
    if (snapshots_.size() < 4 && random_.OneIn(2)) {
      snapshots_.push_back({dbs_[0]->GetSnapshot(), dbs_[1]->GetSnapshot()});
      return;
    }
    if (snapshots_.empty()) return;
    // A RocksDB's iterators look at their snapshot again later.
    std::erase_if(pairs_, [](const auto& pair) { return !pair->refreshes; });
    const auto given =
        snapshots_.begin() + static_cast<ptrdiff_t>(random_.Uniform(snapshots_.size()));
    for (size_t which = 0; which < 2; ++which) dbs_[which]->ReleaseSnapshot((*given)[which]);
    snapshots_.erase(given);
  }
  void ReadThroughBatch() {
    const size_t family = Family();
    const uint64_t seed = random_.Next();
    Both("indexed batch", [&](size_t which) {
      Random same(seed);
      rocksdb::ColumnFamilyHandle* const handle = handles_[which][family];
      rocksdb::WriteBatchWithIndex batch(rocksdb::BytewiseComparator(), 0, same.OneIn(2));
      for (int n = 0; n < 10; ++n) {
        const std::string key = "k" + std::to_string(same.Uniform(400));
        const std::string value = std::to_string(same.Next());
        switch (same.Uniform(3)) {
          case 0:
            EXPECT_TRUE(batch.Delete(handle, key).ok());
            break;
          case 1:
            EXPECT_TRUE(batch.Merge(handle, key, value).ok());
            break;
          default:
            EXPECT_TRUE(batch.Put(handle, key, value).ok());
        }
      }
      std::string answer;
      const std::unique_ptr<rocksdb::Iterator> both(
          batch.NewIteratorWithBase(handle, dbs_[which]->NewIterator({}, handle)));
      both->Seek("k" + std::to_string(same.Uniform(400)));
      for (int n = 0; n < 20 && both->Valid(); ++n) {
        answer += both->key().ToString() + "=" + both->value().ToString() + " ";
        same.OneIn(3) ? both->Prev() : both->Next();
      }
      return answer + CodeOf(both->status());
    });
  }

  // ---- Maintenance --------------------------------------------------------------------------

  void Maintain() {
    const size_t family = Family();
    const std::string begin = Key();
    const std::string end = Key();
    if (random_.OneIn(10)) return ChangeLevel(family, static_cast<int>(random_.Uniform(8)) - 1);
    if (random_.OneIn(10)) return LookIntoMemory(family);
    if (random_.OneIn(3)) {
      Both("compact", [&](size_t which) {
        const rocksdb::Slice first(begin);
        const rocksdb::Slice last(end);
        return CodeOf(dbs_[which]->CompactRange({}, handles_[which][family], &first, &last));
      });
      return;
    }
    Both("flush",
         [&](size_t which) { return CodeOf(dbs_[which]->Flush({}, handles_[which][family])); });
  }
  /// Whether levels on the way are empty is different for each of the two.
  void ChangeLevel(size_t family, int level) {
    rocksdb::CompactRangeOptions options;
    options.change_level = true;
    options.target_level = level;
    for (size_t which = 0; which < 2; ++which) {
      const rocksdb::Status status =
          dbs_[which]->CompactRange(options, handles_[which][family], nullptr, nullptr);
      EXPECT_TRUE(status.ok() || status.IsNotSupported()) << number_ << ": " << status.ToString();
    }
  }
  /// What Nacre shows without I/O, which is not what RocksDB has in its cache, is the beginning of
  /// what it shows with it, and all of that where it does not say that something is missing.
  void LookIntoMemory(size_t family) {
    rocksdb::ReadOptions memory;
    memory.read_tier = rocksdb::kBlockCacheTier;
    const std::unique_ptr<rocksdb::Iterator> part(
        dbs_[0]->NewIterator(memory, handles_[0][family]));
    const std::unique_ptr<rocksdb::Iterator> all(dbs_[0]->NewIterator({}, handles_[0][family]));
    const std::string from = Key();
    part->Seek(from);
    for (all->Seek(from); part->Valid() && all->Valid(); part->Next(), all->Next()) {
      ASSERT_EQ(part->key().ToString(), all->key().ToString()) << number_;
      ASSERT_EQ(part->value().ToString(), all->value().ToString()) << number_;
    }
    EXPECT_FALSE(part->Valid()) << number_;
    if (!part->status().IsIncomplete()) {
      EXPECT_TRUE(part->status().ok()) << part->status().ToString();
      EXPECT_FALSE(all->Valid()) << number_;
    }
  }
  void Rarely() {
    switch (random_.Uniform(3)) {
      case 0:
        return Reopen();
      case 1:
        return MakeAndDrop();
      default:
        Both("set options", [&](size_t which) {
          return CodeOf(dbs_[which]->SetOptions(handles_[which][1], {{"nonsense", "1"}})) +
                 CodeOf(dbs_[which]->SetOptions(handles_[which][1],
                                                {{"write_buffer_size", "131072"}})) +
                 CodeOf(dbs_[which]->SetDBOptions({{"nonsense", "1"}}));
        });
    }
  }
  void MakeAndDrop() {
    const std::string key = Key();
    Both("make and drop", [&](size_t which) {
      rocksdb::ColumnFamilyHandle* made = nullptr;
      rocksdb::DB* const db = dbs_[which].get();
      std::string answer = CodeOf(db->CreateColumnFamily(OptionsOf("made"), "made", &made));
      if (made == nullptr) return answer;
      answer += CodeOf(db->Put({}, made, key, "1"));
      answer += CodeOf(db->DropColumnFamily(made));
      answer += CodeOf(db->DropColumnFamily(made));
      // Without that option a RocksDB takes no writes any more.
      rocksdb::WriteOptions ignore;
      ignore.ignore_missing_column_families = true;
      answer += CodeOf(db->Put(ignore, made, key, "2"));
      std::string value;
      answer += CodeOf(db->Get({}, made, key, &value)) + value;
      answer += CodeOf(db->CompactRange({}, made, nullptr, nullptr));
      answer += CodeOf(db->DestroyColumnFamilyHandle(made));
      return answer;
    });
  }

  void LookAtAll() {
    for (size_t family = 0; family < names_.size(); ++family) {
      Both("all of " + names_[family], [&](size_t which) {
        std::string all;
        const std::unique_ptr<rocksdb::Iterator> iterator(
            dbs_[which]->NewIterator({}, handles_[which][family]));
        for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) all += Shown(*iterator);
        for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) all += Shown(*iterator);
        return all + CodeOf(iterator->status());
      });
    }
  }

  const nacre::Options nacre_options_;
  const std::string folder_;
  Random random_;
  rocksdb::Options options_;
  std::vector<std::string> names_;
  size_t number_ = 0;
  int serial_ = 0;
  std::array<std::unique_ptr<rocksdb::DB>, 2> dbs_;
  std::array<std::vector<rocksdb::ColumnFamilyHandle*>, 2> handles_;
  std::vector<std::array<const rocksdb::Snapshot*, 2>> snapshots_;
  std::vector<std::unique_ptr<IteratorPair>> pairs_;
};

TEST(DifferentialTest, RandomOperations) {
  const TempFolder folder;
  nacre::Options options;
  ASSERT_TRUE(IsOk(Pool::Open("embedded:?nodes=2&size=256MiB", &options.pool)));
  Differential(options, folder.path(), TestSeed(20261123)).Run(Scaled(8000));
}

}  // namespace
}  // namespace nacre::rocksdb_api
