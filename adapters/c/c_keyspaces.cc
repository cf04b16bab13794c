#include "nacre/c_keyspaces.h"

#include <chrono>
#include <utility>

#include "adapters/c/c_column_family.h"
#include "adapters/c/c_error.h"
#include "nacre/utilities/sharded_db.h"

using nacre::ShardedDB;
using nacre::ShardedOptions;

struct nacre_shardedoptions_t {
  ShardedOptions rep;  ///< Without the options of databases.
};

namespace {

ShardedOptions Together(const nacre_options_t* options, const nacre_shardedoptions_t* sharded) {
  ShardedOptions both = sharded->rep;
  static_cast<nacre::Options&>(both) = options->rep;
  return both;
}

}  // namespace

nacre_shardedoptions_t* nacre_shardedoptions_create(void) {
  return std::make_unique<nacre_shardedoptions_t>().release();
}

void nacre_shardedoptions_destroy(nacre_shardedoptions_t* options) { nacre::Destroy(options); }

void nacre_shardedoptions_add_boundary(nacre_shardedoptions_t* options, const char* key,
                                       size_t key_size) {
  options->rep.boundaries.emplace_back(key, key_size);
}

void nacre_shardedoptions_set_coordinator(nacre_shardedoptions_t* options, const char* value) {
  options->rep.coordinator = value;
}

const char* nacre_shardedoptions_get_coordinator(const nacre_shardedoptions_t* options) {
  return options->rep.coordinator.c_str();
}

void nacre_shardedoptions_set_member_address(nacre_shardedoptions_t* options, const char* value) {
  options->rep.member_address = value;
}

const char* nacre_shardedoptions_get_member_address(const nacre_shardedoptions_t* options) {
  return options->rep.member_address.c_str();
}

void nacre_shardedoptions_set_member_lease(nacre_shardedoptions_t* options, uint64_t value) {
  options->rep.member_lease = std::chrono::milliseconds(value);
}

uint64_t nacre_shardedoptions_get_member_lease(const nacre_shardedoptions_t* options) {
  return static_cast<uint64_t>(options->rep.member_lease.count());
}

nacre_t* nacre_open_sharded(const nacre_options_t* options, const nacre_shardedoptions_t* sharded,
                            const char* name, char** errptr) {
  std::unique_ptr<ShardedDB> db;
  if (!nacre::Succeeded(options->invalid, errptr) ||
      !nacre::Succeeded(ShardedDB::Open(Together(options, sharded), name, &db), errptr)) {
    return nullptr;
  }
  return std::make_unique<nacre_t>(nacre_t{std::move(db)}).release();
}

nacre_t* nacre_open_sharded_column_families(const nacre_options_t* options,
                                            const nacre_shardedoptions_t* sharded, const char* name,
                                            int num_families, const char* const* family_names,
                                            const nacre_options_t* const* family_options,
                                            nacre_column_family_handle_t** handles, char** errptr) {
  return nacre::OpenDatabaseFamilies(
      options, num_families, family_names, family_options, handles, errptr,
      [&](const auto& families, auto* opened, std::unique_ptr<nacre::DB>* db) {
        std::unique_ptr<ShardedDB> keyspace;
        const nacre::Status status =
            ShardedDB::Open(Together(options, sharded), name, families, opened, &keyspace);
        *db = std::move(keyspace);
        return status;
      });
}

void nacre_destroy_sharded_db(const nacre_options_t* options, const nacre_shardedoptions_t* sharded,
                              const char* name, char** errptr) {
  if (!nacre::Succeeded(options->invalid, errptr)) return;
  (void)nacre::Succeeded(nacre::DestroyShardedDB(name, Together(options, sharded)), errptr);
}
