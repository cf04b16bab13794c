#include "transactions/prepared_store.h"

#include <utility>

#include "db/db_impl.h"
#include "db/family/hidden_family.h"
#include "db/read/key_sequences.h"

namespace nacre {
namespace {

constexpr char kFormatVersion = 1;

std::string ValueOf(const WriteBatch& batch) {
  std::string value(1, kFormatVersion);
  value += batch.Data();
  return value;
}

class HiddenFamily final : public PreparedFamily {
 public:
  explicit HiddenFamily(DBImpl* engine) : engine_(engine) {}

  std::unique_ptr<ColumnFamilyHandle> Find() override {
    return engine_->key_sequences().FindHandle(std::string(kPreparedFamilyName));
  }
  Status Make(std::unique_ptr<ColumnFamilyHandle>* family) override {
    ColumnFamilyDescriptor of_default;
    NACRE_RETURN_IF_ERROR(engine_->DefaultColumnFamily()->GetDescriptor(&of_default));
    ColumnFamilyHandle* made = nullptr;
    NACRE_RETURN_IF_ERROR(engine_->CreateColumnFamily(HiddenFamilyOptions(of_default.options),
                                                      std::string(kPreparedFamilyName), &made));
    family->reset(made);
    return Status::OK();
  }

 private:
  DBImpl* const engine_;
};

}  // namespace

PreparedStore::PreparedStore(DB* db, DBImpl* engine)
    : PreparedStore(db, std::make_unique<HiddenFamily>(engine)) {}

Status PreparedStore::Open(
    const std::function<Status(const std::string& name, WriteBatch* batch)>& found) {
  ColumnFamilyHandle* family = nullptr;
  {
    MutexLock lock(&mutex_);
    family_ = kept_in_->Find();
    family = family_.get();
  }
  if (family == nullptr) return Status::OK();
  const std::unique_ptr<Iterator> entries = db_->NewIterator({}, family);
  for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
    const std::string name = entries->key().ToString();
    Slice value = entries->value();
    if (value.empty() || value[0] != kFormatVersion) {
      return Status::Corruption("prepared transaction " + name + ": unknown format");
    }
    value.remove_prefix(1);
    WriteBatch batch(value.ToString());
    NACRE_RETURN_IF_ERROR(found(name, &batch).WithContext("prepared transaction " + name));
  }
  return entries->status();
}

void PreparedStore::Close() {
  MutexLock lock(&mutex_);
  family_.reset();
}

Status PreparedStore::FindFamily(ColumnFamilyHandle** family) {
  MutexLock lock(&mutex_);
  if (family_ == nullptr) NACRE_RETURN_IF_ERROR(kept_in_->Make(&family_));
  *family = family_.get();
  return Status::OK();
}

Status PreparedStore::Add(WriteOptions options, const std::string& name, const WriteBatch& batch) {
  ColumnFamilyHandle* family = nullptr;
  NACRE_RETURN_IF_ERROR(FindFamily(&family));
  options.disable_wal = false;
  options.sync = true;
  return db_->Put(options, family, name, ValueOf(batch));
}

Status PreparedStore::AddEntry(const std::string& name, const WriteBatch& entry,
                               WriteBatch* batch) {
  ColumnFamilyHandle* family = nullptr;
  NACRE_RETURN_IF_ERROR(FindFamily(&family));
  return batch->Put(family, name, ValueOf(entry));
}

Status PreparedStore::AddRemoval(const std::string& name, WriteBatch* batch) {
  ColumnFamilyHandle* family = nullptr;
  NACRE_RETURN_IF_ERROR(FindFamily(&family));
  return batch->Delete(family, name);
}

}  // namespace nacre
