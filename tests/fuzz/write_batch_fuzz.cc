// Write batches, which come from applications, logs and prepared transactions: any bytes are walked
// without reading beyond them, all that walks over them judges them alike, and what is well-formed
// is encoded as a batch with the same updates.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "nacre/write_batch.h"
#include "table/format/write_batch_format.h"

namespace {

using nacre::Slice;
using nacre::Status;
using nacre::ValueType;

/// Makes the batch again. An id of a family other than the default one is encoded as a handle's
/// would be.
class Rebuilder final : public nacre::WriteBatch::Handler {
 public:
  Status PutCF(uint32_t family, const Slice& key, const Slice& value) override {
    return Add(ValueType::kValue, family, key, value);
  }
  Status DeleteCF(uint32_t family, const Slice& key) override {
    return Add(ValueType::kDeletion, family, key, Slice());
  }
  Status SingleDeleteCF(uint32_t family, const Slice& key) override {
    return Add(ValueType::kSingleDeletion, family, key, Slice());
  }
  Status DeleteRangeCF(uint32_t family, const Slice& begin, const Slice& end) override {
    return Add(ValueType::kRangeDeletion, family, begin, end);
  }
  Status MergeCF(uint32_t family, const Slice& key, const Slice& operand) override {
    return Add(ValueType::kMerge, family, key, operand);
  }
  void LogData(const Slice& blob) override {
    updates_.push_back(static_cast<char>(nacre::BatchTag::kLogData));
    nacre::PutLengthPrefixedSlice(&updates_, blob);
  }

  std::string Batch() const {
    std::string bytes(nacre::kWriteBatchHeader, '\0');
    nacre::EncodeFixed32(bytes.data() + 8, count_);
    return bytes + updates_;
  }

 private:
  Status Add(ValueType type, uint32_t family, const Slice& key, const Slice& value) {
    const nacre::EncodedUpdate update(type, family, key, value);
    for (const Slice& part : update.parts()) updates_.append(part.data(), part.size());
    ++count_;
    return Status::OK();
  }

  std::string updates_;
  uint32_t count_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  nacre::WriteBatch batch(bytes);
  Rebuilder rebuilder;
  const Status status = batch.Iterate(&rebuilder);
  uint64_t updates = 0;
  const Status walked = nacre::ForEachUpdate(
      bytes, [&](ValueType, uint32_t, const Slice&, const Slice&) { ++updates; });
  if (walked.ok() != status.ok()) std::abort();
  if (status.ok()) {
    if (updates != batch.Count()) std::abort();
    Rebuilder again;
    const nacre::WriteBatch rebuilt(rebuilder.Batch());
    if (!rebuilt.Iterate(&again).ok() || again.Batch() != rebuilt.Data()) std::abort();
    if (rebuilt.HasMerge() != batch.HasMerge() || rebuilt.HasPut() != batch.HasPut()) std::abort();
  }
  if (size < nacre::kWriteBatchHeader) return 0;
  nacre::WriteBatch both;
  if (!both.Append(batch).ok() || both.Count() != batch.Count()) std::abort();
  batch.SetSavePoint();
  if (!batch.Put("key", "value").ok() || batch.Count() != both.Count() + 1) std::abort();
  if (!batch.RollbackToSavePoint().ok() || batch.Data() != bytes) std::abort();
  return 0;
}
