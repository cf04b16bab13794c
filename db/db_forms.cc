#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "db/db_impl.h"

// The forms of DB's methods that stand on the others.

namespace nacre {

Status DB::Open(const Options& options, const std::string& name, std::unique_ptr<DB>* db) {
  return DBImpl::Open(options, name, {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)},
                      /*handles=*/nullptr, db);
}

Status DB::Open(const DBOptions& options, const std::string& name,
                const std::vector<ColumnFamilyDescriptor>& families,
                std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db) {
  return DBImpl::Open(options, name, families, handles, db);
}

Status DB::CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                              ColumnFamilyHandle** handle) {
  *handle = nullptr;
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(CreateColumnFamilies({ColumnFamilyDescriptor(name, options)}, &handles));
  *handle = handles.front();
  return Status::OK();
}

Status DB::CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>&,
                                std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  return Status::NotSupported("CreateColumnFamily: the database was opened for reading");
}

Status DB::CreateColumnFamilies(const ColumnFamilyOptions& options,
                                const std::vector<std::string>& names,
                                std::vector<ColumnFamilyHandle*>* handles) {
  std::vector<ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, options);
  return CreateColumnFamilies(families, handles);
}

Status DB::DropColumnFamily(ColumnFamilyHandle* family) { return DropColumnFamilies({family}); }

Status DB::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>&) {
  return Status::NotSupported("DropColumnFamily: the database was opened for reading");
}

Status DB::DestroyColumnFamilyHandle(ColumnFamilyHandle* family) {
  if (family != DefaultColumnFamily()) delete family;
  return Status::OK();
}

Status DB::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
               std::string* value) {
  PinnableSlice pinned;
  NACRE_RETURN_IF_ERROR(Get(options, family, key, &pinned));
  value->assign(pinned.data(), pinned.size());
  return Status::OK();
}

std::vector<Status> DB::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                 std::vector<std::string>* values) {
  std::vector<PinnableSlice> pinned(keys.size());
  std::vector<Status> statuses(keys.size());
  MultiGet(options, keys.size(), keys.data(), pinned.data(), statuses.data());
  values->resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) (*values)[i].assign(pinned[i].data(), pinned[i].size());
  }
  return statuses;
}

std::vector<Status> DB::MultiGet(const ReadOptions& options,
                                 const std::vector<ColumnFamilyHandle*>& families,
                                 const std::vector<Slice>& keys, std::vector<std::string>* values) {
  values->assign(keys.size(), std::string());
  if (families.size() != keys.size()) {
    return std::vector<Status>(
        keys.size(), Status::InvalidArgument("MultiGet: there must be a family for each key"));
  }
  // In the order in which they are named first: where handles lie decides nothing.
  std::vector<std::pair<ColumnFamilyHandle*, std::vector<size_t>>> by_family;
  std::map<ColumnFamilyHandle*, size_t> known;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto [at, fresh] = known.emplace(families[i], by_family.size());
    if (fresh) by_family.emplace_back(families[i], std::vector<size_t>());
    by_family[at->second].second.push_back(i);
  }
  ReadOptions as_of = options;
  const Snapshot* taken = nullptr;
  if (options.snapshot == nullptr && by_family.size() > 1) as_of.snapshot = taken = GetSnapshot();
  std::vector<Status> statuses(keys.size());
  for (const auto& [family, places] : by_family) {
    std::vector<Slice> wanted;
    for (const size_t place : places) wanted.push_back(keys[place]);
    std::vector<PinnableSlice> found(places.size());
    std::vector<Status> answers(places.size());
    MultiGet(as_of, family, places.size(), wanted.data(), found.data(), answers.data());
    for (size_t i = 0; i < places.size(); ++i) {
      if (answers[i].ok()) (*values)[places[i]].assign(found[i].data(), found[i].size());
      statuses[places[i]] = std::move(answers[i]);
    }
  }
  ReleaseSnapshot(taken);
  return statuses;
}

Status DB::NewIterators(const ReadOptions& options,
                        const std::vector<ColumnFamilyHandle*>& families,
                        std::vector<std::unique_ptr<Iterator>>* iterators) {
  iterators->clear();
  ReadOptions as_of = options;
  const Snapshot* taken = nullptr;
  if (options.snapshot == nullptr) as_of.snapshot = taken = GetSnapshot();
  Status status;
  for (ColumnFamilyHandle* family : families) {
    // Each keeps what it sees.
    iterators->push_back(NewIterator(as_of, family));
    if (status.ok()) status = iterators->back()->status();
  }
  ReleaseSnapshot(taken);
  if (!status.ok()) iterators->clear();
  return status;
}

Status DB::Flush(const FlushOptions& options, const std::vector<ColumnFamilyHandle*>& families) {
  // The first one takes the others' MemTables along, unless it has nothing to flush itself.
  for (ColumnFamilyHandle* family : families) NACRE_RETURN_IF_ERROR(Flush(options, family));
  return Status::OK();
}

}  // namespace nacre
