#include "adapters/rocksdb/batch_filter.h"

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <string>

#include "adapters/rocksdb/engine.h"

namespace nacre::rocksdb_api {
namespace {

/// Batches take a family by its handle, and of that only the id.
class FamilyId final : public rocksdb::ColumnFamilyHandle {
 public:
  explicit FamilyId(uint32_t id) : id_(id) {}
  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return id_; }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* /*descriptor*/) override {
    return rocksdb::Status::NotSupported("it is but an id");
  }
  const rocksdb::Comparator* GetComparator() const override { return nullptr; }

 private:
  const uint32_t id_;
  const std::string name_;
};

}  // namespace

rocksdb::Status BatchFilter::Filter(const rocksdb::WriteBatch& batch) {
  kept_.Clear();
  present_.clear();
  missing_.clear();
  return batch.Iterate(this);
}

bool BatchFilter::LostFamily() const {
  return std::ranges::any_of(present_, [&](uint32_t id) { return !HasFamily(*db_, id); });
}

rocksdb::Status BatchFilter::PutCF(uint32_t id, const Slice& key, const Slice& value) {
  FamilyId family(id);
  return Has(id) ? kept_.Put(&family, key, value) : Status::OK();
}

rocksdb::Status BatchFilter::DeleteCF(uint32_t id, const Slice& key) {
  FamilyId family(id);
  return Has(id) ? kept_.Delete(&family, key) : Status::OK();
}

rocksdb::Status BatchFilter::SingleDeleteCF(uint32_t id, const Slice& key) {
  FamilyId family(id);
  return Has(id) ? kept_.SingleDelete(&family, key) : Status::OK();
}

rocksdb::Status BatchFilter::DeleteRangeCF(uint32_t id, const Slice& begin, const Slice& end) {
  FamilyId family(id);
  return Has(id) ? kept_.DeleteRange(&family, begin, end) : Status::OK();
}

rocksdb::Status BatchFilter::MergeCF(uint32_t id, const Slice& key, const Slice& operand) {
  FamilyId family(id);
  return Has(id) ? kept_.Merge(&family, key, operand) : Status::OK();
}

bool BatchFilter::Has(uint32_t id) {
  if (present_.contains(id)) return true;
  if (missing_.contains(id)) return false;
  const bool has = HasFamily(*db_, id);
  (has ? present_ : missing_).insert(id);
  return has;
}

}  // namespace nacre::rocksdb_api
