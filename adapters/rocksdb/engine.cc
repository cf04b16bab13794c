#include "adapters/rocksdb/engine.h"

#include <memory>

#include "db/db_impl.h"
#include "db/read/key_sequences.h"

namespace nacre::rocksdb_api {

uint64_t DatabaseIdOf(const nacre::DB& db) { return dynamic_cast<const DBImpl&>(db).database_id(); }

std::vector<nacre::ColumnFamilyMetaData> MetaDataOfFamilies(nacre::DB* db) {
  std::vector<nacre::ColumnFamilyMetaData> families;
  const KeySequences known = dynamic_cast<const DBImpl&>(*db).key_sequences();
  for (const uint32_t id : known.Families()) {
    const std::unique_ptr<nacre::ColumnFamilyHandle> handle = known.FindHandle(id);
    if (handle != nullptr) db->GetColumnFamilyMetaData(handle.get(), &families.emplace_back());
  }
  return families;
}

std::unique_ptr<nacre::Iterator> NewMemoryIterator(const nacre::DB& db,
                                                   const nacre::ReadOptions& options,
                                                   uint32_t family) {
  return dynamic_cast<const DBImpl&>(db).key_sequences().NewMemoryIterator(options, family);
}

bool HasFamily(const nacre::DB& db, uint32_t id) {
  return dynamic_cast<const DBImpl&>(db).key_sequences().FindHandle(id) != nullptr;
}

}  // namespace nacre::rocksdb_api
