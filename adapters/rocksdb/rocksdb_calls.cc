// Functions of RocksDB that are not virtual and take any rocksdb::DB, or any family, for one of
// RocksDB's own. These take their place in a program that is linked with a librocksdb.so, since a
// program's functions come before those of its libraries: for what is Nacre's they do what Nacre
// can, for all else they call RocksDB's. Linked with a librocksdb.a, RocksDB's are used.

#include "adapters/rocksdb/rocksdb_calls.h"

#include <dlfcn.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <memory>
#include <string>

#include "adapters/rocksdb/batch_with_index.h"
#include "adapters/rocksdb/handles.h"
#include "adapters/rocksdb/unsupported_db.h"

namespace {

using nacre::rocksdb_api::FamilyHandle;
using nacre::rocksdb_api::UnsupportedDb;

/// Null if it is one of RocksDB's.
UnsupportedDb* NacreOf(rocksdb::DB* db) {
  return db == nullptr ? nullptr : dynamic_cast<UnsupportedDb*>(db->GetRootDB());
}
bool IsNacre(const rocksdb::ColumnFamilyHandle* family) {
  return dynamic_cast<const FamilyHandle*>(family) != nullptr;
}

/// RocksDB's; null if there is none behind this one.
template <typename Function>
Function* Next(const char* symbol) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, symbol));
}

rocksdb::Status NoLibrary() {
  return rocksdb::Status::NotSupported("the program is not linked with a librocksdb.so");
}

}  // namespace

namespace nacre::rocksdb_api {

void TakeRocksdbCalls() {}

}  // namespace nacre::rocksdb_api

namespace rocksdb {

[[gnu::weak]] void CancelAllBackgroundWork(DB* db, bool wait) {
  if (UnsupportedDb* const nacre = NacreOf(db); nacre != nullptr) {
    return nacre->CancelAllBackgroundWork(wait);
  }
  static auto* const next = Next<void(DB*, bool)>("_ZN7rocksdb23CancelAllBackgroundWorkEPNS_2DBEb");
  if (next != nullptr) next(db, wait);
}

[[gnu::weak]] Status DeleteFilesInRanges(DB* db, ColumnFamilyHandle* family, const RangePtr* ranges,
                                         size_t n, bool include_end) {
  if (UnsupportedDb* const nacre = NacreOf(db); nacre != nullptr) {
    return nacre->DeleteFilesInRanges(family, ranges, n, include_end);
  }
  static auto* const next = Next<Status(DB*, ColumnFamilyHandle*, const RangePtr*, size_t, bool)>(
      "_ZN7rocksdb19DeleteFilesInRangesEPNS_2DBEPNS_18ColumnFamilyHandleEPKNS_8RangePtrEmb");
  return next == nullptr ? NoLibrary() : next(db, family, ranges, n, include_end);
}

[[gnu::weak]] Status DeleteFilesInRange(DB* db, ColumnFamilyHandle* family, const Slice* begin,
                                        const Slice* end, bool include_end) {
  const RangePtr range(begin, end);
  return DeleteFilesInRanges(db, family, &range, 1, include_end);
}

// A method is called as a function whose first parameter is the object.

[[gnu::weak]] Status WriteBatchWithIndex::GetFromBatch(ColumnFamilyHandle* family,
                                                       const DBOptions& options, const Slice& key,
                                                       std::string* value) {
  if (IsNacre(family)) return nacre::rocksdb_api::GetFromBatch(this, family, key, value);
  static auto* const next = Next<Status(WriteBatchWithIndex*, ColumnFamilyHandle*, const DBOptions&,
                                        const Slice&, std::string*)>(
      "_ZN7rocksdb19WriteBatchWithIndex12GetFromBatchEPNS_18ColumnFamilyHandleERKNS_9DBOptionsERKNS"
      "_5SliceEPNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  return next == nullptr ? NoLibrary() : next(this, family, options, key, value);
}

[[gnu::weak]] Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options,
                                                            ColumnFamilyHandle* family,
                                                            const Slice& key,
                                                            PinnableSlice* value) {
  if (IsNacre(family)) {
    return nacre::rocksdb_api::GetFromBatchAndDB(this, db, options, family, key, value);
  }
  static auto* const next = Next<Status(WriteBatchWithIndex*, DB*, const ReadOptions&,
                                        ColumnFamilyHandle*, const Slice&, PinnableSlice*)>(
      "_ZN7rocksdb19WriteBatchWithIndex17GetFromBatchAndDBEPNS_2DBERKNS_11ReadOptionsEPNS_18Column"
      "FamilyHandleERKNS_5SliceEPNS_13PinnableSliceE");
  return next == nullptr ? NoLibrary() : next(this, db, options, family, key, value);
}

[[gnu::weak]] void WriteBatchWithIndex::MultiGetFromBatchAndDB(
    DB* db, const ReadOptions& options, ColumnFamilyHandle* family, const size_t count,
    const Slice* keys, PinnableSlice* values, Status* statuses, bool sorted_input) {
  if (IsNacre(family)) {
    return nacre::rocksdb_api::MultiGetFromBatchAndDB(this, db, options, family, count, keys,
                                                      values, statuses);
  }
  static auto* const next =
      Next<void(WriteBatchWithIndex*, DB*, const ReadOptions&, ColumnFamilyHandle*, size_t,
                const Slice*, PinnableSlice*, Status*, bool)>(
          "_ZN7rocksdb19WriteBatchWithIndex22MultiGetFromBatchAndDBEPNS_2DBERKNS_11ReadOptionsEPNS"
          "_18ColumnFamilyHandleEmPKNS_5SliceEPNS_13PinnableSliceEPNS_6StatusEb");
  if (next != nullptr) {
    return next(this, db, options, family, count, keys, values, statuses, sorted_input);
  }
  for (size_t i = 0; i < count; ++i) statuses[i] = NoLibrary();
}

[[gnu::weak]] Iterator* WriteBatchWithIndex::NewIteratorWithBase(ColumnFamilyHandle* family,
                                                                 Iterator* base,
                                                                 const ReadOptions* options) {
  if (IsNacre(family)) return nacre::rocksdb_api::NewIteratorWithBase(this, family, base, options);
  static auto* const next =
      Next<Iterator*(WriteBatchWithIndex*, ColumnFamilyHandle*, Iterator*, const ReadOptions*)>(
          "_ZN7rocksdb19WriteBatchWithIndex19NewIteratorWithBaseEPNS_18ColumnFamilyHandleEPNS_8Iter"
          "atorEPKNS_11ReadOptionsE");
  if (next != nullptr) return next(this, family, base, options);
  const std::unique_ptr<Iterator> unused(base);
  return NewErrorIterator(NoLibrary());
}

}  // namespace rocksdb
