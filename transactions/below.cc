#include "transactions/below.h"

#include "db/db_impl.h"
#include "db/family/column_family.h"
#include "nacre/utilities/stackable_db.h"
#include "table/merge/merge_operands.h"

namespace nacre {
uint32_t IdOf(const ColumnFamilyHandle* family) { return family == nullptr ? 0 : family->GetID(); }

const Comparator* ComparatorOf(ColumnFamilyHandle* family) {
  if (family == nullptr) return nullptr;
  if (const auto* ours = dynamic_cast<const ColumnFamilyHandleImpl*>(family)) {
    return ours->family()->user_comparator();
  }
  ColumnFamilyDescriptor descriptor;
  return family->GetDescriptor(&descriptor).ok() ? descriptor.options.comparator : nullptr;
}

Status MergeBelow(DB* db, ColumnFamilyHandle* family, const Slice& key, const Slice* existing,
                  const std::vector<Slice>& operands, std::string* value) {
  if (family == nullptr && db != nullptr) family = db->DefaultColumnFamily();
  ColumnFamilyDescriptor described;
  if (family == nullptr || !family->GetDescriptor(&described).ok()) {
    return Status::InvalidArgument("Merge: the column family is not known");
  }
  MergeOperands all(MergeOperands::Order::kOldestFirst);
  for (const Slice& operand : operands) all.Add(/*tag=*/0, operand);
  return all.Apply(described.options.merge_operator.get(), key, existing, /*logger=*/nullptr,
                   value);
}

DBImpl* EngineOf(DB* db) {
  while (auto* wrapper = dynamic_cast<StackableDB*>(db)) db = wrapper->GetBaseDB();
  return dynamic_cast<DBImpl*>(db);
}

}  // namespace nacre
