#include "adapters/rocksdb/nacre_rocksdb.h"

#include <utility>
#include <vector>

#include "adapters/rocksdb/convert.h"
#include "adapters/rocksdb/nacre_db.h"
#include "adapters/rocksdb/rocksdb_calls.h"
#include "adapters/rocksdb/sanitize.h"
#include "nacre/db.h"

namespace nacre::rocksdb_api {

rocksdb::Status Open(const rocksdb::Options& options, const nacre::Options& nacre_options,
                     const std::string& name, std::unique_ptr<rocksdb::DB>* db) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::Status status = Open(options, nacre_options, name,
                                {{rocksdb::kDefaultColumnFamilyName, options}}, &handles, db);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    const std::unique_ptr<rocksdb::ColumnFamilyHandle> unused(handle);
  }
  return status;
}

rocksdb::Status Open(const rocksdb::DBOptions& options, const nacre::Options& nacre_options,
                     const std::string& name,
                     const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                     std::vector<rocksdb::ColumnFamilyHandle*>* handles,
                     std::unique_ptr<rocksdb::DB>* db) {
  TakeRocksdbCalls();
  handles->clear();
  rocksdb::DBOptions sane = options;
  std::vector<std::string> notes;
  Sanitize(&sane, &notes);
  NoteUnused(options, &notes);
  nacre::DBOptions ours = nacre_options;
  if (rocksdb::Status s = ToNacre(sane, &ours); !s.ok()) return s;
  const auto errors = std::make_shared<ErrorCounter>();
  ours.listeners.push_back(errors);
  std::vector<nacre::ColumnFamilyDescriptor> our_families;
  rocksdb::ColumnFamilyOptions of_default;
  for (const auto& [family, family_options] : families) {
    NoteUnused(family, family_options, &notes);
    nacre::ColumnFamilyDescriptor& next = our_families.emplace_back(family, nacre_options);
    if (rocksdb::Status s = ToNacre(family_options, options.info_log, &next.options); !s.ok()) {
      return s;
    }
    if (family == rocksdb::kDefaultColumnFamilyName) of_default = family_options;
  }
  std::unique_ptr<nacre::DB> opened;
  std::vector<nacre::ColumnFamilyHandle*> our_handles;
  if (nacre::Status s = nacre::DB::Open(ours, name, our_families, &our_handles, &opened); !s.ok()) {
    return ToRocksdb(s);
  }
  for (size_t i = 0; i < families.size(); ++i) {
    handles->push_back(NewHandle(opened.get(), our_handles[i], families[i].options));
  }
  auto made =
      std::make_unique<NacreRocksdb>(sane, of_default, nacre_options, std::move(opened), errors);
  made->LogNotes(notes);
  *db = std::move(made);
  return rocksdb::Status::OK();
}

rocksdb::Status ListColumnFamilies(const nacre::Options& nacre_options, const std::string& name,
                                   std::vector<std::string>* families) {
  return ToRocksdb(nacre::DB::ListColumnFamilies(nacre_options, name, families));
}

rocksdb::Status Destroy(const nacre::Options& nacre_options, const std::string& name) {
  return ToRocksdb(nacre::DestroyDB(name, nacre_options));
}

}  // namespace nacre::rocksdb_api
