#include <cstdlib>
#include <utility>
#include <vector>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"
#include "adapters/common/c_memory.h"

using nacre::CopyToCString;
using nacre::DB;
using nacre::Status;
using nacre::Succeeded;

char** nacre::CopyNames(const std::vector<std::string>& names, size_t* count) {
  *count = 0;
  auto list = std::make_unique<char*[]>(names.size() + 1);
  for (const std::string& name : names) list[(*count)++] = CopyToCString(name);
  return list.release();
}

void nacre::FreeNames(char** names, size_t count) {
  const std::unique_ptr<char*[]> list(names);
  for (size_t i = 0; i < count; ++i) std::free(list[i]);
}

namespace {

/// `open` fills in the database.
template <typename Open>
nacre_t* OpenWith(const nacre_options_t* options, char** errptr, const Open& open) {
  std::unique_ptr<DB> db;
  if (!Succeeded(options->invalid, errptr) || !Succeeded(open(&db), errptr)) return nullptr;
  return std::make_unique<nacre_t>(nacre_t{std::move(db)}).release();
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
  return nacre::CopyNames(names, count);
}

void nacre_list_dbs_destroy(char** names, size_t count) { nacre::FreeNames(names, count); }

void nacre_write(nacre_t* db, const nacre_writeoptions_t* options, nacre_writebatch_t* batch,
                 char** errptr) {
  if (!Succeeded(batch->failure, errptr)) return;
  (void)Succeeded(db->rep->Write(options->rep, &batch->rep), errptr);
}

const char* nacre_pinnableslice_value(const nacre_pinnableslice_t* slice, size_t* value_size) {
  *value_size = slice == nullptr ? 0 : slice->rep.size();
  return slice == nullptr ? nullptr : slice->rep.data();
}

void nacre_pinnableslice_destroy(nacre_pinnableslice_t* slice) {
  std::unique_ptr<nacre_pinnableslice_t> destroyed(slice);
}

void nacre_flush_wal(nacre_t* db, unsigned char sync, char** errptr) {
  (void)Succeeded(db->rep->FlushWAL(sync != 0), errptr);
}

void nacre_wait_for_compact(nacre_t* db, char** errptr) {
  (void)Succeeded(db->rep->WaitForCompact(), errptr);
}

void nacre_verify_checksum(nacre_t* db, char** errptr) {
  (void)Succeeded(db->rep->VerifyChecksum(), errptr);
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
