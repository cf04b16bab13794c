#include "nacre/write_batch.h"

#include <utility>

#include "nacre/column_family.h"
#include "table/format/internal_key.h"
#include "table/format/write_batch_format.h"
#include "util/coding.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

constexpr size_t kCountAt = 8;

Status CheckSize(const Slice& bytes, const char* what) {
  if (bytes.size() <= UINT32_MAX) return Status::OK();
  return Status::InvalidArgument(std::string(what) + " is 4 GiB or longer");
}

void SetCount(std::string* representation, uint32_t count) {
  EncodeFixed32(representation->data() + kCountAt, count);
}

/// Calls `append`. If that throws, as there is no memory for what it appends, nothing is appended.
template <typename Append>
Status Extend(std::string* representation, Append append) {
  const size_t before = representation->size();
  return CatchAll([&] {
    try {
      // A batch of bytes from elsewhere may be no batch.
      if (before < kWriteBatchHeader) representation->resize(kWriteBatchHeader);
      append();
    } catch (...) {
      representation->resize(before);
      throw;
    }
    return Status::OK();
  });
}

Status AddUpdate(std::string* representation, ValueType type, ColumnFamilyHandle* family,
                 const Slice& key, const Slice& value) {
  NACRE_RETURN_IF_ERROR(CheckSize(key, "key"));
  NACRE_RETURN_IF_ERROR(CheckSize(value, "value"));
  const EncodedUpdate update(type, family == nullptr ? kDefaultFamily : family->GetID(), key,
                             value);
  return Extend(representation, [&] {
    for (const Slice& part : update.parts()) representation->append(part.data(), part.size());
    SetCount(representation, DecodeFixed32(representation->data() + kCountAt) + 1);
  });
}

bool Has(const std::string& representation, ValueType wanted) {
  bool found = false;
  // A malformed tail is for Iterate to report.
  ForEachUpdate(representation, [&](ValueType type, uint32_t, const Slice&, const Slice&) {
    found |= type == wanted;
  }).IgnoreError();
  return found;
}

Status NoFamily(const char* what, uint32_t family) {
  return Status::InvalidArgument(std::string(what) + " of column family " + std::to_string(family) +
                                 " is not implemented by this handler");
}

Status Handle(const BatchItem& item, WriteBatch::Handler* handler) {
  switch (item.type) {
    case ValueType::kValue:
      return handler->PutCF(item.family, item.key, item.value);
    case ValueType::kDeletion:
      return handler->DeleteCF(item.family, item.key);
    case ValueType::kSingleDeletion:
      return handler->SingleDeleteCF(item.family, item.key);
    case ValueType::kRangeDeletion:
      return handler->DeleteRangeCF(item.family, item.key, item.value);
    case ValueType::kMerge:
      return handler->MergeCF(item.family, item.key, item.value);
  }
  return Status::Corruption("write batch: unknown type of update");
}

}  // namespace

Status WriteBatch::Handler::PutCF(uint32_t family, const Slice& key, const Slice& value) {
  if (family != kDefaultFamily) return NoFamily("PutCF", family);
  Put(key, value);
  return Status::OK();
}

Status WriteBatch::Handler::DeleteCF(uint32_t family, const Slice& key) {
  if (family != kDefaultFamily) return NoFamily("DeleteCF", family);
  Delete(key);
  return Status::OK();
}

Status WriteBatch::Handler::SingleDeleteCF(uint32_t family, const Slice& key) {
  if (family != kDefaultFamily) return NoFamily("SingleDeleteCF", family);
  SingleDelete(key);
  return Status::OK();
}

Status WriteBatch::Handler::DeleteRangeCF(uint32_t family, const Slice& /*begin*/,
                                          const Slice& /*end*/) {
  return NoFamily("DeleteRangeCF", family);
}

Status WriteBatch::Handler::MergeCF(uint32_t family, const Slice& key, const Slice& operand) {
  if (family != kDefaultFamily) return NoFamily("MergeCF", family);
  Merge(key, operand);
  return Status::OK();
}

WriteBatch::WriteBatch() : rep_(kWriteBatchHeader, '\0') {}

WriteBatch::WriteBatch(std::string representation) : rep_(std::move(representation)) {}

Status WriteBatch::Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value) {
  return AddUpdate(&rep_, ValueType::kValue, family, key, value);
}

Status WriteBatch::Delete(ColumnFamilyHandle* family, const Slice& key) {
  return AddUpdate(&rep_, ValueType::kDeletion, family, key, Slice());
}

Status WriteBatch::SingleDelete(ColumnFamilyHandle* family, const Slice& key) {
  return AddUpdate(&rep_, ValueType::kSingleDeletion, family, key, Slice());
}

Status WriteBatch::DeleteRange(ColumnFamilyHandle* family, const Slice& begin, const Slice& end) {
  return AddUpdate(&rep_, ValueType::kRangeDeletion, family, begin, end);
}

Status WriteBatch::Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& operand) {
  return AddUpdate(&rep_, ValueType::kMerge, family, key, operand);
}

Status WriteBatch::PutLogData(const Slice& blob) {
  NACRE_RETURN_IF_ERROR(CheckSize(blob, "log data"));
  return Extend(&rep_, [&] {
    rep_.push_back(static_cast<char>(BatchTag::kLogData));
    PutLengthPrefixedSlice(&rep_, blob);
  });
}

Status WriteBatch::Append(const WriteBatch& other) {
  if (other.rep_.size() < kWriteBatchHeader) {
    return Status::Corruption("write batch: shorter than its header");
  }
  const uint64_t count = uint64_t{Count()} + other.Count();
  if (count > UINT32_MAX) {
    return Status::InvalidArgument("write batch: more than 4 billion updates");
  }
  // It may be this one.
  const size_t bytes = other.rep_.size();
  return Extend(&rep_, [&] {
    rep_.append(other.rep_, kWriteBatchHeader, bytes - kWriteBatchHeader);
    SetCount(&rep_, static_cast<uint32_t>(count));
  });
}

void WriteBatch::Clear() {
  rep_.assign(kWriteBatchHeader, '\0');
  save_points_.clear();
}

void WriteBatch::SetSavePoint() {
  save_points_.push_back({.bytes = rep_.size(), .count = Count()});
}

Status WriteBatch::RollbackToSavePoint() {
  if (save_points_.empty()) return Status::NotFound("write batch: no save point");
  const SavePoint& point = save_points_.back();
  rep_.resize(point.bytes);
  if (rep_.size() >= kWriteBatchHeader) SetCount(&rep_, point.count);
  save_points_.pop_back();
  return Status::OK();
}

Status WriteBatch::PopSavePoint() {
  if (save_points_.empty()) return Status::NotFound("write batch: no save point");
  save_points_.pop_back();
  return Status::OK();
}

uint32_t WriteBatch::Count() const {
  return rep_.size() < kWriteBatchHeader ? 0 : DecodeFixed32(rep_.data() + kCountAt);
}

bool WriteBatch::HasPut() const { return Has(rep_, ValueType::kValue); }
bool WriteBatch::HasDelete() const { return Has(rep_, ValueType::kDeletion); }
bool WriteBatch::HasSingleDelete() const { return Has(rep_, ValueType::kSingleDeletion); }
bool WriteBatch::HasDeleteRange() const { return Has(rep_, ValueType::kRangeDeletion); }
bool WriteBatch::HasMerge() const { return Has(rep_, ValueType::kMerge); }

Status WriteBatch::Iterate(Handler* handler) const try {
  if (rep_.size() < kWriteBatchHeader) {
    return Status::Corruption("write batch: shorter than its header");
  }
  Slice input(rep_);
  input.remove_prefix(kWriteBatchHeader);
  uint64_t found = 0;
  while (!input.empty()) {
    if (!handler->Continue()) return Status::OK();
    BatchItem item;
    NACRE_RETURN_IF_ERROR(ParseBatchItem(&input, &item));
    if (item.log_data) {
      handler->LogData(item.value);
      continue;
    }
    NACRE_RETURN_IF_ERROR(Handle(item, handler));
    ++found;
  }
  return CheckBatchCount(found, Count());
} catch (...) {
  return StatusOfException();
}

}  // namespace nacre
