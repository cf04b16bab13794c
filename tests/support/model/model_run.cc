#include "tests/support/model/model_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "nacre/merge_operator.h"
#include "pool/wire/node_stats.h"
#include "table/format/internal_key.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

/// Those that are put, and deleted singly, and get nothing else.
constexpr int kOnceKeys = 40;
std::string OnceKey(int i) { return "once" + std::to_string(i); }

}  // namespace

ModelRun::ModelRun(std::shared_ptr<pool::PoolImpl> pool, const ModelCase& model_case, uint64_t seed)
    : random_(seed),
      comparator_(model_case.comparator),
      large_value_(model_case.large_value),
      all_kinds_(model_case.all_kinds),
      model_(comparator_),
      pool_(std::move(pool)),
      options_(SmallTableOptions(pool_)) {
  options_.comparator = model_case.comparator;
  options_.compaction = model_case.site;
  options_.redundancy = model_case.redundancy;
  options_.index_memory_budget = model_case.index_memory_budget;
  options_.max_subcompactions = model_case.max_subcompactions;
  options_.record_cache_size = model_case.record_cache_size;
  options_.encryption_key_file = model_case.encryption_key_file;
  if (all_kinds_) options_.merge_operator = MergeOperators::CreateStringAppendOperator();
  MakeKeys();
}

void ModelRun::Run(size_t operations) {
  ASSERT_NE(pool_, nullptr);
  ASSERT_NO_FATAL_FAILURE(Open());
  const size_t large_value_at = operations / 2;
  for (size_t i = 0; i < operations; ++i) {
    SCOPED_TRACE("operation " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(Step());
    if (i == large_value_at) {
      ASSERT_NO_FATAL_FAILURE(PutLargeValue());
    }
    if (i % 1024 == 0) model_.Forget(Times());
    deepest_ = std::max(deepest_, Depth());
  }
  ASSERT_NO_FATAL_FAILURE(CheckAll());
  ASSERT_NO_FATAL_FAILURE(Compact(/*everything=*/true));
  ASSERT_NO_FATAL_FAILURE(CheckAll());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ASSERT_NO_FATAL_FAILURE(CheckAll());
  ASSERT_NO_FATAL_FAILURE(DeleteAll());
  ASSERT_NO_FATAL_FAILURE(CheckAll());
}

uint64_t ModelRun::compactions_on_nodes() const {
  return SumOverNodes(pool_.get(), &pool::NodeStats::compactions);
}

void ModelRun::MakeKeys() {
  std::set<std::string> keys = {std::string(), std::string(1, '\0'), std::string(8, '\xff'),
                                TestValue(1, 3000)};
  while (keys.size() < 1500) {
    std::string key;
    switch (random_.Uniform(4)) {
      case 0:  // A long run of equal first bytes.
        key = "table:users:row" + std::to_string(random_.Uniform(10'000));
        break;
      case 1:  // Any bytes, any length.
        key = TestValue(random_.Next(), random_.Skewed(7));
        break;
      case 2:  // Zeros at the end, which a padded prefix cannot tell.
        key = "z" + std::string(random_.Uniform(12), '\0');
        break;
      default:
        key = std::to_string(random_.Next());
    }
    keys.insert(std::move(key));
  }
  keys_.assign(keys.begin(), keys.end());
}

const std::string& ModelRun::Key() {
  if (random_.OneIn(2)) return keys_[random_.Uniform(40) * keys_.size() / 40];
  return keys_[random_.Uniform(keys_.size())];
}

std::string ModelRun::Value() {
  size_t size = 0;
  switch (random_.Uniform(100)) {
    case 0:  // Larger than a chunk, and than a table.
      size = random_.Uniform(random_.OneIn(8) ? 200'000 : 20'000);
      break;
    case 1 ... 9:
      size = 0;
      break;
    case 10 ... 29:
      size = random_.Uniform(4000);
      break;
    default:
      size = random_.Uniform(200);
  }
  return TestValue(random_.Next(), size);
}

IteratorBounds ModelRun::Bounds() {
  IteratorBounds bounds;
  if (random_.OneIn(3)) bounds.lower = Key();
  if (random_.OneIn(3)) bounds.upper = Key();
  return bounds;
}

void ModelRun::Step() {
  if (rearranges() && random_.OneIn(300)) {
    ReleaseAll();
    return Rearrange(db_.get(), &random_);
  }
  if (all_kinds_ && random_.OneIn(4)) return WriteOfOtherKind();
  switch (random_.Uniform(1000)) {
    case 0 ... 449:
      return Put(Key(), Value());
    case 450 ... 569:
      return Delete(Key());
    case 570 ... 639:
      return WriteBatchOfMany();
    case 640 ... 759:
      return CheckGet();
    case 760 ... 799:
      return CheckMultiGet();
    case 800 ... 829:
      return WalkIterator();
    case 830 ... 839:
      return TakeSnapshot();
    case 840 ... 848:
      return ReleaseSnapshot();
    case 849 ... 854:
      return HoldIterator();
    case 855 ... 984:
      return StepHeldIterator();
    case 985 ... 990:
      return Flush();
    case 991:
      return Compact(/*everything=*/random_.OneIn(4));
    case 992 ... 993:
      ASSERT_TRUE(IsOk(db_->WaitForCompact()));
      return;
    case 994:
      // Rarely: a reopened database has no snapshots.
      if (random_.OneIn(4)) Reopen();
      return;
    default:
      return LookAtProperties();
  }
}

void ModelRun::Open() { ASSERT_TRUE(IsOk(OpenDatabase(options_, &db_))); }

void ModelRun::Put(const std::string& key, std::string value) {
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
  model_.Put(key, std::move(value));
}

void ModelRun::PutLargeValue() {
  ASSERT_NO_FATAL_FAILURE(Put(keys_[keys_.size() / 3], TestValue(99, large_value_)));
  ASSERT_NO_FATAL_FAILURE(Flush());
}

void ModelRun::Delete(const std::string& key) {
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), key)));
  model_.Delete(key);
}

void ModelRun::WriteBatchOfMany() {
  WriteBatch batch;
  struct Recorder : WriteBatch::Handler {
    explicit Recorder(ModelDB* target) : model(target) {}
    void Put(const Slice& key, const Slice& value) override {
      model->Put(key.ToString(), value.ToString());
    }
    void Delete(const Slice& key) override { model->Delete(key.ToString()); }
    void Merge(const Slice& key, const Slice& operand) override {
      model->Merge(key.ToString(), operand.ToString());
    }
    ModelDB* model;
  } recorder(&model_);
  for (uint64_t n = random_.Skewed(6); n > 0; --n) {
    const std::string& key = Key();
    if (all_kinds_ && random_.OneIn(3)) {
      ASSERT_TRUE(IsOk(batch.Merge(key, TestValue(random_.Next(), random_.Uniform(20)))));
      continue;
    }
    ASSERT_TRUE((random_.OneIn(4) ? batch.Delete(key) : batch.Put(key, Value())).ok());
  }
  const std::string before = batch.Data();
  ASSERT_TRUE(IsOk(db_->Write(NoLog(), &batch)));
  ASSERT_EQ(batch.Data(), before) << "Write changed the batch";
  ASSERT_TRUE(batch.Iterate(&recorder).ok());
}

void ModelRun::WriteOfOtherKind() {
  if (random_.OneIn(3))
    return PutOrDeleteOnce(OnceKey(static_cast<int>(random_.Uniform(kOnceKeys))));
  if (random_.OneIn(20)) return DeleteRange();
  const std::string& key = Key();
  const std::string operand = TestValue(random_.Next(), random_.Uniform(30));
  ASSERT_TRUE(IsOk(db_->Merge(NoLog(), key, operand)));
  model_.Merge(key, operand);
}

void ModelRun::DeleteRange() {
  // Mostly some neighbours.
  const size_t at = random_.Uniform(keys_.size());
  const size_t to = std::min(keys_.size() - 1, at + random_.Skewed(random_.OneIn(10) ? 10 : 5));
  std::string begin = keys_[at];
  std::string end = keys_[to];
  if (comparator_->Compare(begin, end) > 0) std::swap(begin, end);
  // Keys that are deleted singly are deleted in no other way.
  for (int i = 0; i < kOnceKeys; ++i) {
    const std::string key = OnceKey(i);
    if (comparator_->Compare(begin, key) <= 0 && comparator_->Compare(key, end) < 0) return;
  }
  ASSERT_TRUE(IsOk(db_->DeleteRange(NoLog(), begin, end)));
  model_.DeleteRange(begin, end);
}

void ModelRun::PutOrDeleteOnce(const std::string& key) {
  if (model_.Get(key, model_.Now()) == nullptr) return Put(key, Value());
  ASSERT_TRUE(IsOk(db_->SingleDelete(NoLog(), key)));
  model_.Delete(key);
}

const Snapshot* ModelRun::AnySnapshot(uint64_t* time) {
  *time = model_.Now();
  if (snapshots_.empty() || random_.OneIn(2)) return nullptr;
  const HeldSnapshot& held = snapshots_[random_.Uniform(snapshots_.size())];
  *time = held.time;
  return held.snapshot;
}

void ModelRun::CheckGet() {
  uint64_t time = 0;
  ReadOptions options;
  options.snapshot = AnySnapshot(&time);
  options.verify_checksums = !random_.OneIn(4);
  const std::string& key = Key();
  std::string value = "left over";
  const Status status = db_->Get(options, key, &value);
  CheckAnswer(key, time, status, value);
}

void ModelRun::CheckAnswer(const std::string& key, uint64_t time, const Status& status,
                           const Slice& value) {
  const ModelDB::Value expected = model_.Get(key, time);
  const std::string name = Slice(key).ToString(true).substr(0, 80);
  if (expected == nullptr) {
    ASSERT_TRUE(status.IsNotFound()) << name << ": " << status.ToString() << ", expected none";
    return;
  }
  ASSERT_TRUE(status.ok()) << name << ": " << status.ToString() << ", expected a value of "
                           << expected->size() << " bytes";
  ASSERT_TRUE(value == Slice(*expected))
      << name << ": a value of " << value.size() << " bytes, expected " << expected->size();
}

void ModelRun::CheckMultiGet() {
  uint64_t time = 0;
  ReadOptions options;
  options.snapshot = AnySnapshot(&time);
  const size_t count = random_.Uniform(random_.OneIn(5) ? 300 : 20);
  std::vector<Slice> keys;
  for (size_t i = 0; i < count; ++i) keys.emplace_back(Key());
  std::vector<PinnableSlice> values(count);
  std::vector<Status> statuses(count, Status::IOError("not set"));
  db_->MultiGet(options, count, keys.data(), values.data(), statuses.data());
  for (size_t i = 0; i < count; ++i) {
    ASSERT_NO_FATAL_FAILURE(CheckAnswer(keys[i].ToString(), time, statuses[i], values[i]));
  }
}

std::unique_ptr<CheckedIterator> ModelRun::NewCheckedIterator() {
  uint64_t time = 0;
  const Snapshot* snapshot = AnySnapshot(&time);
  const IteratorBounds bounds = Bounds();
  return std::make_unique<CheckedIterator>(db_.get(), comparator_, snapshot, bounds,
                                           model_.Visible(time, bounds.lower, bounds.upper));
}

void ModelRun::WalkIterator() {
  const auto iterator = NewCheckedIterator();
  for (uint64_t n = random_.Uniform(40); n > 0; --n) {
    ASSERT_TRUE(iterator->Step(&random_, Key()));
  }
}

void ModelRun::HoldIterator() {
  if (iterators_.size() < 4) {
    iterators_.push_back(NewCheckedIterator());
  } else {
    iterators_[random_.Uniform(iterators_.size())] = NewCheckedIterator();
  }
}

void ModelRun::StepHeldIterator() {
  if (iterators_.empty()) return;
  ASSERT_TRUE(iterators_[random_.Uniform(iterators_.size())]->Step(&random_, Key()));
}

void ModelRun::TakeSnapshot() {
  if (snapshots_.size() < 8) snapshots_.push_back({db_->GetSnapshot(), model_.Now()});
}

void ModelRun::ReleaseSnapshot() {
  if (snapshots_.empty()) return;
  const size_t i = random_.Uniform(snapshots_.size());
  db_->ReleaseSnapshot(snapshots_[i].snapshot);
  snapshots_.erase(snapshots_.begin() + static_cast<ptrdiff_t>(i));
}

std::set<uint64_t> ModelRun::Times() const {
  std::set<uint64_t> times;
  for (const HeldSnapshot& held : snapshots_) times.insert(held.time);
  return times;
}

void ModelRun::Flush() {
  FlushOptions options;
  options.wait = !random_.OneIn(3);
  ASSERT_TRUE(IsOk(db_->Flush(options)));
}

void ModelRun::Compact(bool everything) {
  const std::string begin = Key();
  const std::string end = Key();
  const Slice begin_slice(begin);
  const Slice end_slice(end);
  const bool open_begin = everything || random_.OneIn(3);
  const bool open_end = everything || random_.OneIn(3);
  const Status status =
      db_->CompactRange({}, open_begin ? nullptr : &begin_slice, open_end ? nullptr : &end_slice);
  ASSERT_TRUE(status.ok()) << status.ToString();
}

void ModelRun::ReleaseAll() {
  iterators_.clear();
  while (!snapshots_.empty()) ReleaseSnapshot();
}

void ModelRun::Reopen() {
  ReleaseAll();
  const SequenceNumber last = db_->GetLatestSequenceNumber();
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_EQ(db_->GetLatestSequenceNumber(), last);
  ASSERT_NO_FATAL_FAILURE(CheckScan(/*forward=*/true));
}

int ModelRun::Depth() {
  for (int level = options_.num_levels - 1; level >= 0; --level) {
    if (GetNumber(db_.get(), "nacre.num-files-at-level" + std::to_string(level)) > 0) {
      return level + 1;
    }
  }
  return 0;
}

void ModelRun::LookAtProperties() {
  ASSERT_EQ(GetNumber(db_.get(), "nacre.num-snapshots"), snapshots_.size());
  ASSERT_FALSE(GetTextProperty(db_.get(), "nacre.stats").empty());
  ASSERT_LE(GetNumber(db_.get(), "nacre.record-cache.bytes"), options_.record_cache_size);
  cache_hits_ = std::max(cache_hits_, GetNumber(db_.get(), "nacre.record-cache.hits"));
  const Range all{Slice(keys_.front()), Slice(keys_.back())};
  uint64_t size = 0;
  ASSERT_TRUE(db_->GetApproximateSizes(&all, 1, &size).ok());
  ASSERT_LE(size, GetNumber(db_.get(), "nacre.space.leased-bytes"));
}

void ModelRun::CheckScan(bool forward) {
  CheckedIterator iterator(db_.get(), comparator_, nullptr, {}, model_.Visible(model_.Now()));
  ASSERT_TRUE(iterator.Scan(forward));
}

void ModelRun::CheckAll() {
  ASSERT_NO_FATAL_FAILURE(CheckScan(/*forward=*/true));
  ASSERT_NO_FATAL_FAILURE(CheckScan(/*forward=*/false));
  for (const HeldSnapshot& held : snapshots_) {
    CheckedIterator iterator(db_.get(), comparator_, held.snapshot, {}, model_.Visible(held.time));
    ASSERT_TRUE(iterator.Scan(/*forward=*/true));
    ASSERT_TRUE(iterator.Scan(/*forward=*/false));
  }
  for (const std::string& key : keys_) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    ASSERT_NO_FATAL_FAILURE(CheckAnswer(key, model_.Now(), status, value));
    for (const HeldSnapshot& held : snapshots_) {
      ReadOptions options;
      options.snapshot = held.snapshot;
      const Status old_status = db_->Get(options, key, &value);
      ASSERT_NO_FATAL_FAILURE(CheckAnswer(key, held.time, old_status, value));
    }
  }
}

void ModelRun::DeleteAll() {
  ReleaseAll();
  for (const std::string& key : keys_) ASSERT_NO_FATAL_FAILURE(Delete(key));
  for (const auto& [key, value] : model_.Visible(model_.Now())) {
    ASSERT_NO_FATAL_FAILURE(PutOrDeleteOnce(key));
  }
  ASSERT_NO_FATAL_FAILURE(Compact(/*everything=*/true));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-live-tables"), 0u)
      << GetTextProperty(db_.get(), "nacre.sstables");
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-tombstones"), 0u);
  EXPECT_EQ(GetNumber(db_.get(), "nacre.space.used-bytes"), 0u);
}

}  // namespace nacre
