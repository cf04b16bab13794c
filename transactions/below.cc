#include "transactions/below.h"

#include "db/db_impl.h"
#include "db/db_iterator.h"
#include "nacre/utilities/stackable_db.h"

namespace nacre {
namespace {

Status CheckFamily(const ColumnFamilyHandle* family) {
  if (IdOf(family) == 0) return Status::OK();
  return Status::NotSupported("column family " + family->GetName());
}

}  // namespace

uint32_t IdOf(const ColumnFamilyHandle* family) { return family == nullptr ? 0 : family->GetID(); }

const Comparator* ComparatorOf(ColumnFamilyHandle* /*family*/) { return nullptr; }

Status GetBelow(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                PinnableSlice* value) {
  NACRE_RETURN_IF_ERROR(CheckFamily(family));
  return db->Get(options, key, value);
}

void MultiGetBelow(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                   const Slice* keys, PinnableSlice* values, Status* statuses) {
  if (const Status status = CheckFamily(family); !status.ok()) {
    for (size_t i = 0; i < num_keys; ++i) statuses[i] = status;
    return;
  }
  db->MultiGet(options, num_keys, keys, values, statuses);
}

std::unique_ptr<Iterator> IteratorBelow(DB* db, const ReadOptions& options,
                                        ColumnFamilyHandle* family) {
  if (Status status = CheckFamily(family); !status.ok()) return NewErrorIterator(std::move(status));
  return db->NewIterator(options);
}

Status MergeWith(const Options& /*options*/, const Slice& /*key*/, const Slice* /*existing*/,
                 const std::vector<Slice>& /*operands*/, std::string* /*value*/) {
  return Status::NotSupported("Merge");
}

Status MergeBelow(DB* db, ColumnFamilyHandle* /*family*/, const Slice& key, const Slice* existing,
                  const std::vector<Slice>& operands, std::string* value) {
  const DBImpl* engine = db == nullptr ? nullptr : EngineOf(db);
  if (engine == nullptr) return Status::InvalidArgument("merge: the database is not known");
  return MergeWith(engine->options(), key, existing, operands, value);
}

DBImpl* EngineOf(DB* db) {
  while (auto* wrapper = dynamic_cast<StackableDB*>(db)) db = wrapper->GetBaseDB();
  return dynamic_cast<DBImpl*>(db);
}

}  // namespace nacre
