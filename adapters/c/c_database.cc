#include <cstdlib>
#include <utility>
#include <vector>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"
#include "adapters/common/c_memory.h"

using nacre::CopyToCString;
using nacre::CopyToMalloc;
using nacre::DB;
using nacre::Slice;
using nacre::Status;
using nacre::Succeeded;

namespace {

/// `open` fills in the database.
template <typename Open>
nacre_t* OpenWith(const nacre_options_t* options, char** errptr, const Open& open) {
  std::unique_ptr<DB> db;
  if (!Succeeded(options->invalid, errptr) || !Succeeded(open(&db), errptr)) return nullptr;
  return std::make_unique<nacre_t>(nacre_t{std::move(db)}).release();
}

/// Of null: none.
const Slice* BoundOf(const char* key, size_t size, Slice* bound) {
  if (key == nullptr) return nullptr;
  *bound = Slice(key, size);
  return bound;
}

}  // namespace

nacre_pool_t* nacre_pool_open(const char* uri, const char* secret, char** errptr) {
  nacre::PoolOptions options;
  if (secret != nullptr) options.secret = secret;
  auto pool = std::make_unique<nacre_pool_t>();
  if (!Succeeded(nacre::Pool::Open(uri, options, &pool->rep), errptr)) return nullptr;
  return pool.release();
}

void nacre_pool_close(nacre_pool_t* pool) { std::unique_ptr<nacre_pool_t> closed(pool); }

const char* nacre_pool_uri(const nacre_pool_t* pool) { return pool->rep->uri().c_str(); }

int nacre_pool_node_count(const nacre_pool_t* pool) { return pool->rep->node_count(); }

nacre_t* nacre_open(const nacre_options_t* options, const char* name, char** errptr) {
  return OpenWith(options, errptr,
                  [&](std::unique_ptr<DB>* db) { return DB::Open(options->rep, name, db); });
}

nacre_t* nacre_open_for_read_only(const nacre_options_t* options, const char* name,
                                  unsigned char error_if_wal_file_exists, char** errptr) {
  return OpenWith(options, errptr, [&](std::unique_ptr<DB>* db) {
    return DB::OpenForReadOnly(options->rep, name, db, error_if_wal_file_exists != 0);
  });
}

nacre_t* nacre_open_as_secondary(const nacre_options_t* options, const char* name, char** errptr) {
  return OpenWith(options, errptr, [&](std::unique_ptr<DB>* db) {
    return DB::OpenAsSecondary(options->rep, name, db);
  });
}

void nacre_try_catch_up_with_primary(nacre_t* db, char** errptr) {
  (void)Succeeded(db->rep->TryCatchUpWithPrimary(), errptr);
}

void nacre_try_close(nacre_t* db, char** errptr) { (void)Succeeded(db->rep->Close(), errptr); }

void nacre_close(nacre_t* db) { std::unique_ptr<nacre_t> closed(db); }

void nacre_destroy_db(const nacre_options_t* options, const char* name, char** errptr) {
  if (!Succeeded(options->invalid, errptr)) return;
  (void)Succeeded(nacre::DestroyDB(name, options->rep), errptr);
}

char** nacre_list_dbs(const nacre_options_t* options, size_t* count, char** errptr) {
  *count = 0;
  std::vector<std::string> names;
  if (!Succeeded(options->invalid, errptr) ||
      !Succeeded(nacre::ListDBs(options->rep, &names), errptr)) {
    return nullptr;
  }
  auto list = std::make_unique<char*[]>(names.size() + 1);
  for (const std::string& name : names) list[(*count)++] = CopyToCString(name);
  return list.release();
}

void nacre_list_dbs_destroy(char** names, size_t count) {
  std::unique_ptr<char*[]> list(names);
  for (size_t i = 0; i < count; ++i) std::free(list[i]);
}

void nacre_put(nacre_t* db, const nacre_writeoptions_t* options, const char* key, size_t key_size,
               const char* value, size_t value_size, char** errptr) {
  (void)Succeeded(db->rep->Put(options->rep, Slice(key, key_size), Slice(value, value_size)),
                  errptr);
}

void nacre_delete(nacre_t* db, const nacre_writeoptions_t* options, const char* key,
                  size_t key_size, char** errptr) {
  (void)Succeeded(db->rep->Delete(options->rep, Slice(key, key_size)), errptr);
}

void nacre_write(nacre_t* db, const nacre_writeoptions_t* options, nacre_writebatch_t* batch,
                 char** errptr) {
  if (!Succeeded(batch->failure, errptr)) return;
  (void)Succeeded(db->rep->Write(options->rep, &batch->rep), errptr);
}

char* nacre_get(nacre_t* db, const nacre_readoptions_t* options, const char* key, size_t key_size,
                size_t* value_size, char** errptr) {
  *value_size = 0;
  nacre::PinnableSlice value;
  const Status status = db->rep->Get(options->rep, Slice(key, key_size), &value);
  if (status.IsNotFound() || !Succeeded(status, errptr)) return nullptr;
  *value_size = value.size();
  return CopyToMalloc(value.ToStringView());
}

nacre_pinnableslice_t* nacre_get_pinned(nacre_t* db, const nacre_readoptions_t* options,
                                        const char* key, size_t key_size, char** errptr) {
  auto slice = std::make_unique<nacre_pinnableslice_t>();
  const Status status = db->rep->Get(options->rep, Slice(key, key_size), &slice->rep);
  if (status.IsNotFound() || !Succeeded(status, errptr)) return nullptr;
  return slice.release();
}

const char* nacre_pinnableslice_value(const nacre_pinnableslice_t* slice, size_t* value_size) {
  *value_size = slice == nullptr ? 0 : slice->rep.size();
  return slice == nullptr ? nullptr : slice->rep.data();
}

void nacre_pinnableslice_destroy(nacre_pinnableslice_t* slice) {
  std::unique_ptr<nacre_pinnableslice_t> destroyed(slice);
}

void nacre_multi_get(nacre_t* db, const nacre_readoptions_t* options, size_t num_keys,
                     const char* const* keys, const size_t* key_sizes, char** values,
                     size_t* value_sizes, char** errors) {
  std::vector<Slice> slices;
  slices.reserve(num_keys);
  for (size_t i = 0; i < num_keys; ++i) slices.emplace_back(keys[i], key_sizes[i]);
  std::vector<nacre::PinnableSlice> found(num_keys);
  std::vector<Status> statuses(num_keys);
  db->rep->MultiGet(options->rep, num_keys, slices.data(), found.data(), statuses.data());
  for (size_t i = 0; i < num_keys; ++i) {
    const bool ok = statuses[i].ok();
    values[i] = ok ? CopyToMalloc(found[i].ToStringView()) : nullptr;
    value_sizes[i] = ok ? found[i].size() : 0;
    errors[i] = ok || statuses[i].IsNotFound() ? nullptr : CopyToCString(statuses[i].ToString());
  }
}

void nacre_flush(nacre_t* db, const nacre_flushoptions_t* options, char** errptr) {
  (void)Succeeded(db->rep->Flush(options->rep), errptr);
}

void nacre_flush_wal(nacre_t* db, unsigned char sync, char** errptr) {
  (void)Succeeded(db->rep->FlushWAL(sync != 0), errptr);
}

void nacre_compact_range(nacre_t* db, const nacre_compactoptions_t* options, const char* begin,
                         size_t begin_size, const char* end, size_t end_size, char** errptr) {
  Slice first;
  Slice last;
  (void)Succeeded(db->rep->CompactRange(options->rep, BoundOf(begin, begin_size, &first),
                                        BoundOf(end, end_size, &last)),
                  errptr);
}

void nacre_wait_for_compact(nacre_t* db, char** errptr) {
  (void)Succeeded(db->rep->WaitForCompact(), errptr);
}

void nacre_verify_checksum(nacre_t* db, char** errptr) {
  (void)Succeeded(db->rep->VerifyChecksum(), errptr);
}

char* nacre_property_value(nacre_t* db, const char* property) {
  std::string value;
  return db->rep->GetProperty(property, &value) ? CopyToCString(value) : nullptr;
}

int nacre_property_int(nacre_t* db, const char* property, uint64_t* value) {
  return db->rep->GetIntProperty(property, value) ? 0 : -1;
}

void nacre_approximate_sizes(nacre_t* db, int num_ranges, const char* const* starts,
                             const size_t* start_sizes, const char* const* limits,
                             const size_t* limit_sizes, uint64_t* sizes, char** errptr) {
  std::vector<nacre::Range> ranges;
  ranges.reserve(static_cast<size_t>(num_ranges));
  for (int i = 0; i < num_ranges; ++i) {
    ranges.push_back({Slice(starts[i], start_sizes[i]), Slice(limits[i], limit_sizes[i])});
  }
  (void)Succeeded(db->rep->GetApproximateSizes(ranges.data(), num_ranges, sizes), errptr);
}

uint64_t nacre_get_latest_sequence_number(nacre_t* db) {
  return db->rep->GetLatestSequenceNumber();
}

const char* nacre_get_name(nacre_t* db) { return db->rep->GetName().c_str(); }

const nacre_snapshot_t* nacre_create_snapshot(nacre_t* db) {
  return std::make_unique<nacre_snapshot_t>(nacre_snapshot_t{db->rep->GetSnapshot()}).release();
}

void nacre_release_snapshot(nacre_t* db, const nacre_snapshot_t* snapshot) {
  const std::unique_ptr<const nacre_snapshot_t> released(snapshot);
  if (released != nullptr) db->rep->ReleaseSnapshot(released->rep);
}

uint64_t nacre_snapshot_get_sequence_number(const nacre_snapshot_t* snapshot) {
  return snapshot->rep->GetSequenceNumber();
}
