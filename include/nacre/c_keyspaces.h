#pragma once

#include "nacre/c.h"

// Keyspaces for C: several databases used as one, each with a range of the keys. Names and manners
// are those of nacre/c.h; nacre/utilities/sharded_db.h and docs/sharding.md say what each does.

#ifdef __cplusplus
extern "C" {
#endif

/// What `ShardedOptions` has beside `Options`.
typedef struct nacre_shardedoptions_t nacre_shardedoptions_t;

nacre_shardedoptions_t* nacre_shardedoptions_create(void);
/// Null is allowed.
void nacre_shardedoptions_destroy(nacre_shardedoptions_t* options);
/// One more key at which a new keyspace is cut. They ascend.
void nacre_shardedoptions_add_boundary(nacre_shardedoptions_t* options, const char* key,
                                       size_t key_size);
/// "etcd:HOST:PORT,...", for which the program links libnacre_c_etcd in the place of libnacre_c,
/// and calls `nacre_use_etcd` (nacre/c_etcd.h). Empty, the default: this process owns all shards.
void nacre_shardedoptions_set_coordinator(nacre_shardedoptions_t* options, const char* value);
const char* nacre_shardedoptions_get_coordinator(const nacre_shardedoptions_t* options);
void nacre_shardedoptions_set_member_address(nacre_shardedoptions_t* options, const char* value);
const char* nacre_shardedoptions_get_member_address(const nacre_shardedoptions_t* options);
/// In milliseconds.
void nacre_shardedoptions_set_member_lease(nacre_shardedoptions_t* options, uint64_t value);
uint64_t nacre_shardedoptions_get_member_lease(const nacre_shardedoptions_t* options);

/// Opens a keyspace for all functions of nacre/c.h that take a database. Null on failure, here and
/// below.
nacre_t* nacre_open_sharded(const nacre_options_t* options, const nacre_shardedoptions_t* sharded,
                            const char* name, char** errptr);
/// As nacre_open_column_families.
nacre_t* nacre_open_sharded_column_families(const nacre_options_t* options,
                                            const nacre_shardedoptions_t* sharded, const char* name,
                                            int num_families, const char* const* family_names,
                                            const nacre_options_t* const* family_options,
                                            nacre_column_family_handle_t** handles, char** errptr);
/// Deletes a keyspace; nothing happens if there is none.
void nacre_destroy_sharded_db(const nacre_options_t* options, const nacre_shardedoptions_t* sharded,
                              const char* name, char** errptr);

#ifdef __cplusplus
}
#endif
