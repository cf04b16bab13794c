#include "nacre/write_batch.h"

#include <utility>

#include "table/internal_key.h"
#include "table/write_batch_format.h"
#include "util/coding.h"

namespace nacre {
namespace {

Status CheckSize(const Slice& bytes, const char* what) {
  if (bytes.size() <= UINT32_MAX) return Status::OK();
  return Status::InvalidArgument(std::string(what) + " is 4 GiB or longer");
}

void AddToCount(std::string* representation) {
  char* count = representation->data() + 8;
  EncodeFixed32(count, DecodeFixed32(count) + 1);
}

}  // namespace

WriteBatch::WriteBatch() : rep_(kWriteBatchHeader, '\0') {}

WriteBatch::WriteBatch(std::string representation) : rep_(std::move(representation)) {}

Status WriteBatch::Put(const Slice& key, const Slice& value) {
  NACRE_RETURN_IF_ERROR(CheckSize(key, "key"));
  NACRE_RETURN_IF_ERROR(CheckSize(value, "value"));
  AddToCount(&rep_);
  rep_.push_back(static_cast<char>(ValueType::kValue));
  PutLengthPrefixedSlice(&rep_, key);
  PutLengthPrefixedSlice(&rep_, value);
  return Status::OK();
}

Status WriteBatch::Delete(const Slice& key) {
  NACRE_RETURN_IF_ERROR(CheckSize(key, "key"));
  AddToCount(&rep_);
  rep_.push_back(static_cast<char>(ValueType::kDeletion));
  PutLengthPrefixedSlice(&rep_, key);
  return Status::OK();
}

void WriteBatch::Clear() { rep_.assign(kWriteBatchHeader, '\0'); }

uint32_t WriteBatch::Count() const {
  return rep_.size() < kWriteBatchHeader ? 0 : DecodeFixed32(rep_.data() + 8);
}

bool WriteBatch::HasPut() const {
  bool found = false;
  // A malformed tail is for Iterate to report.
  ForEachUpdate(rep_, [&found](ValueType type, const Slice&, const Slice&) {
    found |= type == ValueType::kValue;
  }).IgnoreError();
  return found;
}

Status WriteBatch::Iterate(Handler* handler) const {
  return ForEachUpdate(rep_, [handler](ValueType type, const Slice& key, const Slice& value) {
    if (type == ValueType::kValue) {
      handler->Put(key, value);
    } else {
      handler->Delete(key);
    }
  });
}

}  // namespace nacre
