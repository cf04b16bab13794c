#include "jobs/log_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "table/format/write_batch_format.h"
#include "util/memory/prefetch.h"

namespace nacre::pool {
namespace {

/// How far ahead values are asked for, which lie in the order of the log, and how much of each.
/// Updates, with their keys, are asked for as far ahead of these.
constexpr size_t kAhead = 8;
constexpr size_t kUpdateBytesAhead = 2 * 64;
constexpr size_t kValueBytesAhead = 8 * 64;
/// The part of a record behind its head that is looked at for its key.
constexpr size_t kPeekedBytes = 64;
/// Below this a value is copied with its key: a few bytes more cost less than a line elsewhere.
constexpr size_t kLeastInPlace = 128;

uint64_t PrefixOf(const UpdateOrder& order, const std::optional<std::string>& bound) {
  return bound.has_value() ? order.Ref(0, *bound, Slice()).prefix : 0;
}

class UpdateIterator : public InternalIterator {
 public:
  UpdateIterator(const UpdateOrder& order, const std::vector<UpdateItem>& sorted)
      : order_(order), sorted_(sorted), index_(sorted.size()) {}

  void SeekToFirst() override {
    for (size_t i = 0; i < 2 * kAhead; ++i) PrefetchUpdate(i);
    for (size_t i = 0; i < kAhead; ++i) PrefetchValue(i);
    Show(0);
  }
  void SeekToLast() override { Show(sorted_.size() - 1); }
  void Seek(const Slice& internal_key) override { Show(LowerBound(internal_key)); }
  void SeekForPrev(const Slice& internal_key) override {
    Show(LowerBound(internal_key));
    const bool equal =
        Valid() && tag() == ExtractTag(internal_key) && user_key() == ExtractUserKey(internal_key);
    if (!equal) Show(index_ - 1);
  }
  Status status() const override { return Status::OK(); }

 private:
  void NextRun() override {
    Show(index_ + 1);
    PrefetchUpdate(index_ + 2 * kAhead);
    PrefetchValue(index_ + kAhead);
  }
  void PrevRun() override { Show(index_ - 1); }
  /// Before the first is beyond the end.
  void Show(size_t at) {
    index_ = at;
    if (index_ >= sorted_.size()) return ShowNothing();
    const UpdateRef& update = *sorted_[index_].update;
    entry_ = {update.key(), update.tag, update.value()};
    ShowOne(&entry_);
  }
  void PrefetchUpdate(size_t i) const {
    if (i >= sorted_.size()) return;
    PrefetchLines(reinterpret_cast<const char*>(sorted_[i].update), kUpdateBytesAhead);
  }
  void PrefetchValue(size_t i) const {
    if (i >= sorted_.size()) return;
    const Slice value = sorted_[i].update->value();
    PrefetchLines(value.data(), std::min(value.size(), kValueBytesAhead));
  }
  size_t LowerBound(const Slice& internal_key) const {
    const UpdateRef target =
        order_.Ref(ExtractTag(internal_key), ExtractUserKey(internal_key), Slice());
    const auto found = std::partition_point(
        sorted_.begin(), sorted_.end(),
        [&](const UpdateItem& item) { return order_.IsBefore(*item.update, target); });
    return static_cast<size_t>(found - sorted_.begin());
  }

  const UpdateOrder& order_;
  const std::vector<UpdateItem>& sorted_;
  size_t index_;
  InternalEntry entry_;
};

}  // namespace

LogUpdates::LogUpdates(const FlushJob& job, const Comparator* comparator,
                       std::shared_ptr<ArenaBlockSource> blocks)
    : job_(job),
      comparator_(comparator),
      order_(comparator),
      begin_prefix_(PrefixOf(order_, job.merge.begin)),
      end_prefix_(PrefixOf(order_, job.merge.end)),
      arena_(std::move(blocks)) {}

Status LogUpdates::Load(TableStore* store, const std::atomic<bool>* cancelled) {
  cancelled_ = cancelled;
  for (const LogPart& part : job_.log) NACRE_RETURN_IF_ERROR(LoadPart(part, store));
  order_.Sort(&sorted_);
  return Status::OK();
}

std::unique_ptr<InternalIterator> LogUpdates::NewIterator() const {
  return std::make_unique<UpdateIterator>(order_, sorted_);
}

Status LogUpdates::LoadPart(const LogPart& part, TableStore* store) {
  for (const ExtentAddr& copy : part.copies) {
    Source source;
    source.bytes = store->InLocalMemory(copy);
    if (source.bytes == nullptr) continue;
    source.await = [](uint64_t) { return Status::OK(); };
    source.node = copy.start.node;
    source.stays = true;
    return ReadPart(part, source);
  }
  if (reader_ == nullptr)
    NACRE_RETURN_IF_ERROR(PoolReader::Open(store->client()->fabric(), &reader_));
  const auto buffer = std::make_unique_for_overwrite<char[]>(part.bytes);
  Status status = Status::Unavailable(fmt::format("log segment {}: it has no copy", part.number));
  for (const ExtentAddr& copy : part.copies) {
    ReplicaRead read;  // Ends before its memory.
    status = read.Start(reader_.get(), copy, 0, part.bytes, buffer.get());
    if (!status.ok()) continue;
    Source source;
    source.bytes = buffer.get();
    source.await = [&read](uint64_t n) { return read.AwaitFirst(n); };
    source.node = copy.start.node;
    return ReadPart(part, source);
  }
  return status;
}

Status LogUpdates::ReadPart(const LogPart& part, const Source& source) {
  NACRE_RETURN_IF_ERROR(source.await(std::min<uint64_t>(kLogHeaderBytes, part.bytes)));
  char header_bytes[kLogHeaderBytes];
  std::memcpy(header_bytes, source.bytes, kLogHeaderBytes);
  LogSegmentHeader header;
  NACRE_RETURN_IF_ERROR(DecodeLogHeader(Slice(header_bytes, kLogHeaderBytes),
                                        job_.merge.database_id, part.number, &header)
                            .WithContext(fmt::format("node {}", source.node)));
  const uint32_t stamp = LogStamp(job_.merge.database_id, part.number);
  for (uint64_t offset = kLogHeaderBytes; offset < part.bytes;) {
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
      return Status::Aborted("cancelled");
    }
    uint64_t bytes = 0;
    NACRE_RETURN_IF_ERROR(TakeRecord(part, source, offset, stamp, &bytes));
    offset += bytes;
  }
  return Status::OK();
}

Status LogUpdates::TakeRecord(const LogPart& part, const Source& source, uint64_t offset,
                              uint32_t stamp, uint64_t* bytes) {
  const auto damaged = [&](std::string_view what) {
    return Status::Corruption(
        fmt::format("log segment {} on node {}: {} at {}", part.number, source.node, what, offset));
  };
  const uint64_t left = part.bytes - offset;
  if (left < kMinLogRecordBytes) return damaged("the beginning of a record");
  NACRE_RETURN_IF_ERROR(source.await(offset + kMinLogRecordBytes));
  *bytes = LogRecordBytes(DecodeFixed32(source.bytes + offset + kLogLengthAt));
  if (*bytes > left) return damaged("a record beyond the end");
  NACRE_RETURN_IF_ERROR(source.await(offset + *bytes));
  if (LooksOutside(source.bytes + offset, *bytes, stamp)) return Status::OK();
  if (record_.size() < *bytes) record_.resize(*bytes);
  std::memcpy(record_.data(), source.bytes + offset, *bytes);
  LogRecord record;
  if (!ParseLogRecord(Slice(record_.data(), *bytes), stamp, &record) || record.bytes != *bytes) {
    return damaged("a damaged record");
  }
  if (record.first > job_.last || record.first + record.count - 1 < job_.first) {
    return Status::OK();
  }
  if (record.first < job_.first || record.first + record.count - 1 > job_.last) {
    return damaged("a record of two MemTables");
  }
  const char* const lasting = source.stays ? source.bytes + offset + kLogRecordHead : nullptr;
  if (Status s = TakeUpdates(record, lasting); !s.ok()) return damaged(s.message());
  return Status::OK();
}

bool LogUpdates::LooksOutside(const char* record, uint64_t bytes, uint32_t stamp) const {
  const bool bounded = job_.merge.begin.has_value() || job_.merge.end.has_value();
  if (!bounded || job_.merge.family != kDefaultFamily) return false;
  char copy[kLogRecordHead + kPeekedBytes];
  const size_t copied = std::min<uint64_t>(bytes, sizeof(copy));
  std::memcpy(copy, record, copied);
  if (DecodeFixed32(copy + kLogStampAt) != stamp || DecodeFixed32(copy + kLogCountAt) != 1 ||
      copy[kLogRecordHead] != static_cast<char>(ValueType::kValue)) {
    return false;
  }
  Slice input(copy + kLogRecordHead + 1, copied - kLogRecordHead - 1);
  Slice key;
  return GetShortPrefixedSlice(&input, &key) && !InRange(order_.Ref(0, key, Slice()));
}

Status LogUpdates::TakeUpdates(const LogRecord& record, const char* lasting) {
  SequenceNumber sequence = record.first;
  bool has_range_deletions = false;
  NACRE_RETURN_IF_ERROR(ForEachEncodedUpdate(
      record.payload, record.count,
      [&](ValueType type, uint32_t family, const Slice& key, const Slice& value) {
        const SequenceNumber of_update = sequence++;
        if (family != job_.merge.family) return;
        has_range_deletions |= type == ValueType::kRangeDeletion;
        const UpdateRef update = order_.Ref(PackTag(of_update, type), key, value);
        if (!InRange(update)) return;
        const bool in_place = lasting != nullptr && value.size() >= kLeastInPlace;
        Keep(update, in_place ? lasting + (value.data() - record.payload.data()) : nullptr);
      }));
  if (!has_range_deletions) return Status::OK();
  return Status::Corruption("a range deletion, which its owner has to flush");
}

void LogUpdates::Keep(const UpdateRef& update, const char* lasting_value) {
  bool new_chunk = false;
  const size_t copied = lasting_value == nullptr ? update.value_size : 0;
  char* const at = arena_.Allocate(sizeof(UpdateRef) + update.key_size + copied, &new_chunk);
  char* const key = at + sizeof(UpdateRef);
  char* const value = key + update.key_size;
  if (update.key_size > 0) std::memcpy(key, update.key_data, update.key_size);
  if (copied > 0) std::memcpy(value, update.value_data, copied);
  auto* const kept = new (at) UpdateRef(update);
  kept->key_data = key;
  kept->value_data = lasting_value == nullptr ? value : lasting_value;
  sorted_.push_back({.prefix = kept->prefix, .update = kept});
}

bool LogUpdates::InRange(const UpdateRef& update) const {
  // As a rule the first bytes tell.
  const auto& [begin, end] = std::tie(job_.merge.begin, job_.merge.end);
  if (begin.has_value() && update.prefix <= begin_prefix_ &&
      (update.prefix < begin_prefix_ || comparator_->Compare(update.key(), *begin) < 0)) {
    return false;
  }
  return !end.has_value() || update.prefix < end_prefix_ ||
         (update.prefix == end_prefix_ && comparator_->Compare(update.key(), *end) < 0);
}

}  // namespace nacre::pool
