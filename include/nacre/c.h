#pragma once

#include <stddef.h>
#include <stdint.h>

// Nacre for C, and for languages that call C. Names and manners are those of rocksdb/c.h, so that
// what is known of the one holds for the other; nacre/db.h says what each call does. Link with
// libnacre_c.so, which exports nothing but what is here, in nacre/c_callbacks.h (merge operators,
// compaction filters, prefixes, statistics) and in nacre/c_transactions.h.
//
// - Each type is opaque. The caller owns what `create`, `open` and the like return, and gives it to
//   the `destroy` or `close` of its type. An argument is borrowed for the call, unless something
//   else is said there; no pointer may be null, unless something else is said.
// - Keys and values are a pointer and a length, and may hold any byte.
// - `errptr` points to a null pointer, or to a message of an earlier failure. It stays as it is if
//   the call succeeds, else it gets a message, "Busy: ..." for example, in place of that one. The
//   message is the caller's: `nacre_free`. `nacre_error_code` tells what kind it is.
// - Memory that is answered (values, messages) comes from malloc; `nacre_free` gives it back.
// - Booleans are 0 for false and anything else for true.
// - Threads: as in C++. A database may be used by many threads at once, anything else by one at a
//   time. Iterators, snapshots, pinned values and handles of families must be given back before the
//   database is closed.

#ifdef __cplusplus
extern "C" {
#endif

/// What the functions work on; all opaque.
typedef struct nacre_t nacre_t;
typedef struct nacre_pool_t nacre_pool_t;
typedef struct nacre_options_t nacre_options_t;
typedef struct nacre_readoptions_t nacre_readoptions_t;
typedef struct nacre_writeoptions_t nacre_writeoptions_t;
typedef struct nacre_flushoptions_t nacre_flushoptions_t;
typedef struct nacre_compactoptions_t nacre_compactoptions_t;
typedef struct nacre_checkpointoptions_t nacre_checkpointoptions_t;
typedef struct nacre_checkpointinfo_t nacre_checkpointinfo_t;
typedef struct nacre_writebatch_t nacre_writebatch_t;
typedef struct nacre_iterator_t nacre_iterator_t;
typedef struct nacre_snapshot_t nacre_snapshot_t;
typedef struct nacre_pinnableslice_t nacre_pinnableslice_t;
typedef struct nacre_column_family_handle_t nacre_column_family_handle_t;
typedef struct nacre_statistics_t nacre_statistics_t;
typedef struct nacre_write_buffer_manager_t nacre_write_buffer_manager_t;
typedef struct nacre_comparator_t nacre_comparator_t;
typedef struct nacre_mergeoperator_t nacre_mergeoperator_t;
typedef struct nacre_compactionfilter_t nacre_compactionfilter_t;
typedef struct nacre_compactionfiltercontext_t nacre_compactionfiltercontext_t;
typedef struct nacre_compactionfilterfactory_t nacre_compactionfilterfactory_t;
typedef struct nacre_slicetransform_t nacre_slicetransform_t;
typedef struct nacre_logger_t nacre_logger_t;

// ---- Errors and memory -----------------------------------------------------------------------

/// The codes of nacre::Status.
enum {
  nacre_code_ok = 0,
  nacre_code_not_found = 1,
  nacre_code_corruption = 2,
  nacre_code_not_supported = 3,
  nacre_code_invalid_argument = 4,
  nacre_code_io_error = 5,
  nacre_code_incomplete = 6,
  nacre_code_shutdown_in_progress = 7,
  nacre_code_timed_out = 8,
  nacre_code_aborted = 9,
  nacre_code_busy = 10,
  nacre_code_try_again = 11,
  nacre_code_no_space = 12,
  nacre_code_unavailable = 13,
  nacre_code_fenced = 14
};

/// The code of a message that a function here has set; of null, `nacre_code_ok`; of any other text,
/// -1.
int nacre_error_code(const char* error);
/// Null is allowed.
void nacre_free(void* memory);
/// The library's version, such as "1.2.3"; and the same with commit and kind of build, such as
/// "1.2.3 (commit 1a2b3c4d5e, release)". Both are static.
const char* nacre_version(void);
const char* nacre_version_with_commit(void);

// ---- Pools -----------------------------------------------------------------------------------

/// Opens the pool of memory nodes that `uri` names (nacre/pool.h). One that several databases are
/// to share, or an embedded one whose data is to outlive the closing of its databases.
/// `secret` may be null: then as nacre/pool.h says. Null on failure.
nacre_pool_t* nacre_pool_open(const char* uri, const char* secret, char** errptr);
/// Databases that have it open keep it open. Null is allowed.
void nacre_pool_close(nacre_pool_t* pool);
/// Lives as long as `pool`.
const char* nacre_pool_uri(const nacre_pool_t* pool);
int nacre_pool_node_count(const nacre_pool_t* pool);

// ---- Databases -------------------------------------------------------------------------------

/// Null on failure, here and below.
nacre_t* nacre_open(const nacre_options_t* options, const char* name, char** errptr);
nacre_t* nacre_open_for_read_only(const nacre_options_t* options, const char* name,
                                  unsigned char error_if_wal_file_exists, char** errptr);
nacre_t* nacre_open_as_secondary(const nacre_options_t* options, const char* name, char** errptr);
void nacre_try_catch_up_with_primary(nacre_t* db, char** errptr);
/// Closes and says whether that went well. `db` then is good for `nacre_close` only.
void nacre_try_close(nacre_t* db, char** errptr);
/// Closes `db` if it is open, and frees it. Null is allowed.
void nacre_close(nacre_t* db);
void nacre_destroy_db(const nacre_options_t* options, const char* name, char** errptr);
/// Names of the databases in the pool of `options`: `*count` of them, to be given to
/// `nacre_list_dbs_destroy`. Null on failure.
char** nacre_list_dbs(const nacre_options_t* options, size_t* count, char** errptr);
void nacre_list_dbs_destroy(char** names, size_t count);

void nacre_put(nacre_t* db, const nacre_writeoptions_t* options, const char* key, size_t key_size,
               const char* value, size_t value_size, char** errptr);
void nacre_delete(nacre_t* db, const nacre_writeoptions_t* options, const char* key,
                  size_t key_size, char** errptr);
/// Deletes a key that was put once since it was last deleted, and not merged.
void nacre_singledelete(nacre_t* db, const nacre_writeoptions_t* options, const char* key,
                        size_t key_size, char** errptr);
/// Keys from `begin` up to, and without, `end`.
void nacre_delete_range(nacre_t* db, const nacre_writeoptions_t* options, const char* begin,
                        size_t begin_size, const char* end, size_t end_size, char** errptr);
/// Uses the merge operator of the options (nacre/c_callbacks.h).
void nacre_merge(nacre_t* db, const nacre_writeoptions_t* options, const char* key, size_t key_size,
                 const char* operand, size_t operand_size, char** errptr);
/// Fails, with nothing written, if an update did not fit into the batch.
void nacre_write(nacre_t* db, const nacre_writeoptions_t* options, nacre_writebatch_t* batch,
                 char** errptr);
/// Null, and no error, if there is no such key.
char* nacre_get(nacre_t* db, const nacre_readoptions_t* options, const char* key, size_t key_size,
                size_t* value_size, char** errptr);
/// The same without a copy of the value, where it lies in memory of the database.
nacre_pinnableslice_t* nacre_get_pinned(nacre_t* db, const nacre_readoptions_t* options,
                                        const char* key, size_t key_size, char** errptr);
/// Null and 0 for null. The bytes live as long as `slice`.
const char* nacre_pinnableslice_value(const nacre_pinnableslice_t* slice, size_t* value_size);
/// Null is allowed.
void nacre_pinnableslice_destroy(nacre_pinnableslice_t* slice);
/// All keys as of one state of the database. The caller's arrays have `num_keys` elements:
/// `values[i]` is null if key i is absent or `errors[i]` is set; each is the caller's.
void nacre_multi_get(nacre_t* db, const nacre_readoptions_t* options, size_t num_keys,
                     const char* const* keys, const size_t* key_sizes, char** values,
                     size_t* value_sizes, char** errors);

void nacre_flush(nacre_t* db, const nacre_flushoptions_t* options, char** errptr);
void nacre_flush_wal(nacre_t* db, unsigned char sync, char** errptr);
/// A null key stands before, or after, all keys.
void nacre_compact_range(nacre_t* db, const nacre_compactoptions_t* options, const char* begin,
                         size_t begin_size, const char* end, size_t end_size, char** errptr);
void nacre_wait_for_compact(nacre_t* db, char** errptr);
void nacre_verify_checksum(nacre_t* db, char** errptr);

/// "nacre.stats" and others (docs/operations.md). Null if there is no such property.
char* nacre_property_value(nacre_t* db, const char* property);
/// 0 if there is such a number, -1 else, as in RocksDB.
int nacre_property_int(nacre_t* db, const char* property, uint64_t* value);
/// `sizes` has `num_ranges` elements.
void nacre_approximate_sizes(nacre_t* db, int num_ranges, const char* const* starts,
                             const size_t* start_sizes, const char* const* limits,
                             const size_t* limit_sizes, uint64_t* sizes, char** errptr);
uint64_t nacre_get_latest_sequence_number(nacre_t* db);
/// Lives as long as `db`.
const char* nacre_get_name(nacre_t* db);

const nacre_snapshot_t* nacre_create_snapshot(nacre_t* db);
/// Null is allowed for `snapshot`.
void nacre_release_snapshot(nacre_t* db, const nacre_snapshot_t* snapshot);
uint64_t nacre_snapshot_get_sequence_number(const nacre_snapshot_t* snapshot);

// ---- Column families -------------------------------------------------------------------------

// A null family is the default one, in all functions that take one. One of another database, and
// writing to one that was dropped, is "Invalid argument".

/// Opens the database with these families. All existing ones must be named, the default one among
/// them; missing ones are made if the options say so. The arrays have `num_families` elements;
/// `handles` are filled in, each for `nacre_column_family_handle_destroy`. Settings of a family are
/// taken from `family_options`, all others from `options`.
nacre_t* nacre_open_column_families(const nacre_options_t* options, const char* name,
                                    int num_families, const char* const* family_names,
                                    const nacre_options_t* const* family_options,
                                    nacre_column_family_handle_t** handles, char** errptr);
/// These two need not name all families.
nacre_t* nacre_open_for_read_only_column_families(const nacre_options_t* options, const char* name,
                                                  int num_families, const char* const* family_names,
                                                  const nacre_options_t* const* family_options,
                                                  nacre_column_family_handle_t** handles,
                                                  unsigned char error_if_wal_file_exists,
                                                  char** errptr);
nacre_t* nacre_open_as_secondary_column_families(const nacre_options_t* options, const char* name,
                                                 int num_families, const char* const* family_names,
                                                 const nacre_options_t* const* family_options,
                                                 nacre_column_family_handle_t** handles,
                                                 char** errptr);
/// `*count` of them, to be given to `nacre_list_column_families_destroy`. Null on failure.
char** nacre_list_column_families(const nacre_options_t* options, const char* name, size_t* count,
                                  char** errptr);
void nacre_list_column_families_destroy(char** names, size_t count);
/// Null on failure.
nacre_column_family_handle_t* nacre_create_column_family(nacre_t* db,
                                                         const nacre_options_t* family_options,
                                                         const char* family_name, char** errptr);
/// The handle still has to be destroyed, and reads what there was until then.
void nacre_drop_column_family(nacre_t* db, nacre_column_family_handle_t* family, char** errptr);
/// Null is allowed, and destroys nothing.
void nacre_column_family_handle_destroy(nacre_column_family_handle_t* family);
uint32_t nacre_column_family_handle_get_id(const nacre_column_family_handle_t* family);
/// The caller's.
char* nacre_column_family_handle_get_name(const nacre_column_family_handle_t* family,
                                          size_t* name_size);

void nacre_put_cf(nacre_t* db, const nacre_writeoptions_t* options,
                  nacre_column_family_handle_t* family, const char* key, size_t key_size,
                  const char* value, size_t value_size, char** errptr);
void nacre_delete_cf(nacre_t* db, const nacre_writeoptions_t* options,
                     nacre_column_family_handle_t* family, const char* key, size_t key_size,
                     char** errptr);
void nacre_singledelete_cf(nacre_t* db, const nacre_writeoptions_t* options,
                           nacre_column_family_handle_t* family, const char* key, size_t key_size,
                           char** errptr);
void nacre_delete_range_cf(nacre_t* db, const nacre_writeoptions_t* options,
                           nacre_column_family_handle_t* family, const char* begin,
                           size_t begin_size, const char* end, size_t end_size, char** errptr);
void nacre_merge_cf(nacre_t* db, const nacre_writeoptions_t* options,
                    nacre_column_family_handle_t* family, const char* key, size_t key_size,
                    const char* operand, size_t operand_size, char** errptr);
char* nacre_get_cf(nacre_t* db, const nacre_readoptions_t* options,
                   nacre_column_family_handle_t* family, const char* key, size_t key_size,
                   size_t* value_size, char** errptr);
nacre_pinnableslice_t* nacre_get_pinned_cf(nacre_t* db, const nacre_readoptions_t* options,
                                           nacre_column_family_handle_t* family, const char* key,
                                           size_t key_size, char** errptr);
/// As `nacre_multi_get`, key i of `families[i]`.
void nacre_multi_get_cf(nacre_t* db, const nacre_readoptions_t* options,
                        const nacre_column_family_handle_t* const* families, size_t num_keys,
                        const char* const* keys, const size_t* key_sizes, char** values,
                        size_t* value_sizes, char** errors);
nacre_iterator_t* nacre_create_iterator_cf(nacre_t* db, const nacre_readoptions_t* options,
                                           nacre_column_family_handle_t* family);
/// One for each of `count` families, all as of one state of the database.
void nacre_create_iterators(nacre_t* db, const nacre_readoptions_t* options,
                            nacre_column_family_handle_t* const* families,
                            nacre_iterator_t** iterators, size_t count, char** errptr);
/// Flushes all families, as `nacre_flush` does.
void nacre_flush_cf(nacre_t* db, const nacre_flushoptions_t* options,
                    nacre_column_family_handle_t* family, char** errptr);
void nacre_compact_range_cf(nacre_t* db, const nacre_compactoptions_t* options,
                            nacre_column_family_handle_t* family, const char* begin,
                            size_t begin_size, const char* end, size_t end_size, char** errptr);
char* nacre_property_value_cf(nacre_t* db, nacre_column_family_handle_t* family,
                              const char* property);
int nacre_property_int_cf(nacre_t* db, nacre_column_family_handle_t* family, const char* property,
                          uint64_t* value);
void nacre_approximate_sizes_cf(nacre_t* db, nacre_column_family_handle_t* family, int num_ranges,
                                const char* const* starts, const size_t* start_sizes,
                                const char* const* limits, const size_t* limit_sizes,
                                uint64_t* sizes, char** errptr);

// ---- Iterators -------------------------------------------------------------------------------

/// Never null. A new one is not valid until a seek. The bounds of `options` are copied.
nacre_iterator_t* nacre_create_iterator(nacre_t* db, const nacre_readoptions_t* options);
/// Null is allowed.
void nacre_iter_destroy(nacre_iterator_t* iterator);
unsigned char nacre_iter_valid(const nacre_iterator_t* iterator);
void nacre_iter_seek_to_first(nacre_iterator_t* iterator);
void nacre_iter_seek_to_last(nacre_iterator_t* iterator);
void nacre_iter_seek(nacre_iterator_t* iterator, const char* key, size_t key_size);
void nacre_iter_seek_for_prev(nacre_iterator_t* iterator, const char* key, size_t key_size);
/// These four need a valid iterator. The bytes stay until it moves.
void nacre_iter_next(nacre_iterator_t* iterator);
void nacre_iter_prev(nacre_iterator_t* iterator);
const char* nacre_iter_key(const nacre_iterator_t* iterator, size_t* key_size);
const char* nacre_iter_value(const nacre_iterator_t* iterator, size_t* value_size);
/// Why it is not valid, unless that is the end of the keys.
void nacre_iter_get_error(const nacre_iterator_t* iterator, char** errptr);

// ---- Batches ---------------------------------------------------------------------------------

nacre_writebatch_t* nacre_writebatch_create(void);
/// Makes a batch from the `nacre_writebatch_data` of another one. `nacre_write` finds damage.
nacre_writebatch_t* nacre_writebatch_create_from(const char* data, size_t size);
/// Null is allowed.
void nacre_writebatch_destroy(nacre_writebatch_t* batch);
void nacre_writebatch_clear(nacre_writebatch_t* batch);
int nacre_writebatch_count(const nacre_writebatch_t* batch);
void nacre_writebatch_put(nacre_writebatch_t* batch, const char* key, size_t key_size,
                          const char* value, size_t value_size);
void nacre_writebatch_delete(nacre_writebatch_t* batch, const char* key, size_t key_size);
void nacre_writebatch_singledelete(nacre_writebatch_t* batch, const char* key, size_t key_size);
void nacre_writebatch_delete_range(nacre_writebatch_t* batch, const char* begin, size_t begin_size,
                                   const char* end, size_t end_size);
void nacre_writebatch_merge(nacre_writebatch_t* batch, const char* key, size_t key_size,
                            const char* operand, size_t operand_size);
void nacre_writebatch_put_cf(nacre_writebatch_t* batch, nacre_column_family_handle_t* family,
                             const char* key, size_t key_size, const char* value,
                             size_t value_size);
void nacre_writebatch_delete_cf(nacre_writebatch_t* batch, nacre_column_family_handle_t* family,
                                const char* key, size_t key_size);
void nacre_writebatch_singledelete_cf(nacre_writebatch_t* batch,
                                      nacre_column_family_handle_t* family, const char* key,
                                      size_t key_size);
void nacre_writebatch_delete_range_cf(nacre_writebatch_t* batch,
                                      nacre_column_family_handle_t* family, const char* begin,
                                      size_t begin_size, const char* end, size_t end_size);
void nacre_writebatch_merge_cf(nacre_writebatch_t* batch, nacre_column_family_handle_t* family,
                               const char* key, size_t key_size, const char* operand,
                               size_t operand_size);
/// Goes to the log with the updates and nowhere else.
void nacre_writebatch_put_log_data(nacre_writebatch_t* batch, const char* blob, size_t size);
void nacre_writebatch_append(nacre_writebatch_t* batch, const nacre_writebatch_t* other);
/// Save points are a stack. The latter two fail ("NotFound") if there is none.
void nacre_writebatch_set_save_point(nacre_writebatch_t* batch);
void nacre_writebatch_rollback_to_save_point(nacre_writebatch_t* batch, char** errptr);
void nacre_writebatch_pop_save_point(nacre_writebatch_t* batch, char** errptr);
/// Calls one of the two for each put and each deletion of the default family, in order; other
/// updates of it are not told, those of other families end it with "Invalid argument".
void nacre_writebatch_iterate(const nacre_writebatch_t* batch, void* state,
                              void (*put)(void* state, const char* key, size_t key_size,
                                          const char* value, size_t value_size),
                              void (*deleted)(void* state, const char* key, size_t key_size),
                              char** errptr);
/// Calls one of these for each update, in order, with the id of its family. Null: not told.
void nacre_writebatch_iterate_cf(
    const nacre_writebatch_t* batch, void* state,
    void (*put)(void* state, uint32_t family, const char* key, size_t key_size, const char* value,
                size_t value_size),
    void (*deleted)(void* state, uint32_t family, const char* key, size_t key_size),
    void (*single_deleted)(void* state, uint32_t family, const char* key, size_t key_size),
    void (*range_deleted)(void* state, uint32_t family, const char* begin, size_t begin_size,
                          const char* end, size_t end_size),
    void (*merged)(void* state, uint32_t family, const char* key, size_t key_size,
                   const char* operand, size_t operand_size),
    char** errptr);
/// Stays until the batch is changed.
const char* nacre_writebatch_data(const nacre_writebatch_t* batch, size_t* size);

// ---- Options ---------------------------------------------------------------------------------

/// Makes options with the defaults of nacre/options.h, as all `create` functions of options do.
nacre_options_t* nacre_options_create(void);
nacre_options_t* nacre_options_create_copy(const nacre_options_t* options);
/// Null is allowed.
void nacre_options_destroy(nacre_options_t* options);

void nacre_options_set_pool_uri(nacre_options_t* options, const char* uri);
/// Sets the pool, which replaces the URI. The options, and what is opened with them, keep the pool
/// open.
void nacre_options_set_pool(nacre_options_t* options, nacre_pool_t* pool);
void nacre_options_set_redundancy(nacre_options_t* options, const char* redundancy);
/// Sets a directory of this machine; see `DBOptions::db_log_dir`.
void nacre_options_set_db_log_dir(nacre_options_t* options, const char* dir);
/// Sets the file with the keys by which the database is encrypted; see
/// `DBOptions::encryption_key_file`.
void nacre_options_set_encryption_key_file(nacre_options_t* options, const char* path);
/// Sets where metrics are shown; see `DBOptions::metrics_address`.
void nacre_options_set_metrics_address(nacre_options_t* options, const char* address);
/// One of nacre_log_debug and so on.
void nacre_options_set_info_log_level(nacre_options_t* options, int value);
int nacre_options_get_info_log_level(const nacre_options_t* options);
/// Sets the comparator, which is not copied: it must outlive the options and the databases that are
/// opened with them.
void nacre_options_set_comparator(nacre_options_t* options, const nacre_comparator_t* comparator);
/// Sets the filter, which must live as long as a comparator must. Null removes it.
void nacre_options_set_compaction_filter(nacre_options_t* options,
                                         const nacre_compactionfilter_t* filter);
/// All of these: the options, and what is opened with them, keep it; the argument may be destroyed.
/// Null takes an operator away.
void nacre_options_set_compaction_filter_factory(nacre_options_t* options,
                                                 const nacre_compactionfilterfactory_t* factory);
void nacre_options_set_merge_operator(nacre_options_t* options,
                                      const nacre_mergeoperator_t* merge_operator);
void nacre_options_set_prefix_extractor(nacre_options_t* options,
                                        const nacre_slicetransform_t* transform);
/* See nacre/write_buffer_manager.h. The options and databases keep it alive. */
nacre_write_buffer_manager_t* nacre_write_buffer_manager_create(size_t buffer_size,
                                                                unsigned char allow_stall);
void nacre_write_buffer_manager_destroy(nacre_write_buffer_manager_t* manager);
unsigned char nacre_write_buffer_manager_enabled(const nacre_write_buffer_manager_t* manager);
size_t nacre_write_buffer_manager_memory_usage(const nacre_write_buffer_manager_t* manager);
size_t nacre_write_buffer_manager_mutable_memtable_memory_usage(
    const nacre_write_buffer_manager_t* manager);
size_t nacre_write_buffer_manager_buffer_size(const nacre_write_buffer_manager_t* manager);
void nacre_write_buffer_manager_set_buffer_size(nacre_write_buffer_manager_t* manager,
                                                size_t new_size);
void nacre_write_buffer_manager_set_allow_stall(nacre_write_buffer_manager_t* manager,
                                                unsigned char allow_stall);
void nacre_options_set_write_buffer_manager(nacre_options_t* options,
                                            const nacre_write_buffer_manager_t* manager);
void nacre_options_set_statistics(nacre_options_t* options, const nacre_statistics_t* statistics);
void nacre_options_set_info_log(nacre_options_t* options, const nacre_logger_t* logger);

enum { nacre_compaction_auto = 0, nacre_compaction_compute = 1 };
enum {
  nacre_near_data_flush_auto = 0,
  nacre_near_data_flush_on = 1,
  nacre_near_data_flush_off = 2
};
enum {
  nacre_tolerate_corrupted_tail_records_recovery = 0,
  nacre_absolute_consistency_recovery = 1,
  nacre_point_in_time_recovery = 2,
  nacre_skip_any_corrupted_records_recovery = 3
};

/// Numbers and booleans, each as nacre/options.h has it; opening checks their bounds.
void nacre_options_set_allow_degraded_writes(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_allow_degraded_writes(const nacre_options_t* options);
void nacre_options_set_allow_narrow_writes(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_allow_narrow_writes(const nacre_options_t* options);
void nacre_options_set_compaction(nacre_options_t* options, int value);
int nacre_options_get_compaction(const nacre_options_t* options);
void nacre_options_set_near_data_flush(nacre_options_t* options, int value);
int nacre_options_get_near_data_flush(const nacre_options_t* options);
void nacre_options_set_scrub_bytes_per_second(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_scrub_bytes_per_second(const nacre_options_t* options);
void nacre_options_set_create_if_missing(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_create_if_missing(const nacre_options_t* options);
void nacre_options_set_create_missing_column_families(nacre_options_t* options,
                                                      unsigned char value);
unsigned char nacre_options_get_create_missing_column_families(const nacre_options_t* options);
void nacre_options_set_error_if_exists(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_error_if_exists(const nacre_options_t* options);
void nacre_options_set_take_over(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_take_over(const nacre_options_t* options);
void nacre_options_set_follow_interval_ms(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_follow_interval_ms(const nacre_options_t* options);
void nacre_options_set_write_buffer_size(nacre_options_t* options, size_t value);
size_t nacre_options_get_write_buffer_size(const nacre_options_t* options);
void nacre_options_set_max_write_buffer_number(nacre_options_t* options, int value);
int nacre_options_get_max_write_buffer_number(const nacre_options_t* options);
void nacre_options_set_manual_wal_flush(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_manual_wal_flush(const nacre_options_t* options);
void nacre_options_set_wal_recovery_mode(nacre_options_t* options, int value);
int nacre_options_get_wal_recovery_mode(const nacre_options_t* options);
void nacre_options_set_manifest_image_interval_ms(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_manifest_image_interval_ms(const nacre_options_t* options);
void nacre_options_set_manifest_image_edits(nacre_options_t* options, uint32_t value);
uint32_t nacre_options_get_manifest_image_edits(const nacre_options_t* options);
void nacre_options_set_num_levels(nacre_options_t* options, int value);
int nacre_options_get_num_levels(const nacre_options_t* options);
void nacre_options_set_level0_file_num_compaction_trigger(nacre_options_t* options, int value);
int nacre_options_get_level0_file_num_compaction_trigger(const nacre_options_t* options);
void nacre_options_set_level0_slowdown_writes_trigger(nacre_options_t* options, int value);
int nacre_options_get_level0_slowdown_writes_trigger(const nacre_options_t* options);
void nacre_options_set_level0_stop_writes_trigger(nacre_options_t* options, int value);
int nacre_options_get_level0_stop_writes_trigger(const nacre_options_t* options);
void nacre_options_set_target_file_size_base(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_target_file_size_base(const nacre_options_t* options);
void nacre_options_set_target_file_size_multiplier(nacre_options_t* options, int value);
int nacre_options_get_target_file_size_multiplier(const nacre_options_t* options);
void nacre_options_set_max_bytes_for_level_base(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_max_bytes_for_level_base(const nacre_options_t* options);
void nacre_options_set_max_bytes_for_level_multiplier(nacre_options_t* options, double value);
double nacre_options_get_max_bytes_for_level_multiplier(const nacre_options_t* options);
void nacre_options_set_soft_pending_compaction_bytes_limit(nacre_options_t* options,
                                                           uint64_t value);
uint64_t nacre_options_get_soft_pending_compaction_bytes_limit(const nacre_options_t* options);
void nacre_options_set_hard_pending_compaction_bytes_limit(nacre_options_t* options,
                                                           uint64_t value);
uint64_t nacre_options_get_hard_pending_compaction_bytes_limit(const nacre_options_t* options);
void nacre_options_set_delayed_write_rate(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_delayed_write_rate(const nacre_options_t* options);
void nacre_options_set_disable_auto_compactions(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_disable_auto_compactions(const nacre_options_t* options);
void nacre_options_set_max_background_jobs(nacre_options_t* options, int value);
int nacre_options_get_max_background_jobs(const nacre_options_t* options);
void nacre_options_set_max_subcompactions(nacre_options_t* options, uint32_t value);
uint32_t nacre_options_get_max_subcompactions(const nacre_options_t* options);
void nacre_options_set_home_nodes(nacre_options_t* options, unsigned char value);
unsigned char nacre_options_get_home_nodes(const nacre_options_t* options);
void nacre_options_set_db_write_buffer_size(nacre_options_t* options, size_t value);
size_t nacre_options_get_db_write_buffer_size(const nacre_options_t* options);
void nacre_options_set_slab_size(nacre_options_t* options, size_t value);
size_t nacre_options_get_slab_size(const nacre_options_t* options);
void nacre_options_set_chunk_size(nacre_options_t* options, size_t value);
size_t nacre_options_get_chunk_size(const nacre_options_t* options);
void nacre_options_set_max_queue_pairs_per_node(nacre_options_t* options, int value);
int nacre_options_get_max_queue_pairs_per_node(const nacre_options_t* options);
void nacre_options_set_repair_bytes_per_second(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_repair_bytes_per_second(const nacre_options_t* options);
void nacre_options_set_operation_timeout_ms(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_operation_timeout_ms(const nacre_options_t* options);
void nacre_options_set_slow_node_patience_min_ms(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_slow_node_patience_min_ms(const nacre_options_t* options);
void nacre_options_set_slow_node_patience_max_ms(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_slow_node_patience_max_ms(const nacre_options_t* options);
void nacre_options_set_hedged_reads_percent(nacre_options_t* options, uint32_t value);
uint32_t nacre_options_get_hedged_reads_percent(const nacre_options_t* options);
void nacre_options_set_slow_operation_threshold_us(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_slow_operation_threshold_us(const nacre_options_t* options);
void nacre_options_set_max_archive_lag_MB(nacre_options_t* options, uint64_t value);
uint64_t nacre_options_get_max_archive_lag_MB(const nacre_options_t* options);
void nacre_options_set_max_log_file_size(nacre_options_t* options, size_t value);
size_t nacre_options_get_max_log_file_size(const nacre_options_t* options);
void nacre_options_set_log_file_time_to_roll(nacre_options_t* options, size_t value);
size_t nacre_options_get_log_file_time_to_roll(const nacre_options_t* options);
void nacre_options_set_keep_log_file_num(nacre_options_t* options, size_t value);
size_t nacre_options_get_keep_log_file_num(const nacre_options_t* options);
void nacre_options_set_index_memory_budget(nacre_options_t* options, size_t value);
size_t nacre_options_get_index_memory_budget(const nacre_options_t* options);

/// Makes options for reads. `destroy` takes null, here and below.
nacre_readoptions_t* nacre_readoptions_create(void);
void nacre_readoptions_destroy(nacre_readoptions_t* options);
/// Null reads the latest state.
void nacre_readoptions_set_snapshot(nacre_readoptions_t* options, const nacre_snapshot_t* snapshot);
void nacre_readoptions_set_linearizable(nacre_readoptions_t* options, unsigned char value);
void nacre_readoptions_set_verify_checksums(nacre_readoptions_t* options, unsigned char value);
/// Copied. A null key takes the bound away.
void nacre_readoptions_set_iterate_lower_bound(nacre_readoptions_t* options, const char* key,
                                               size_t key_size);
void nacre_readoptions_set_iterate_upper_bound(nacre_readoptions_t* options, const char* key,
                                               size_t key_size);
void nacre_readoptions_set_prefix_same_as_start(nacre_readoptions_t* options, unsigned char value);
void nacre_readoptions_set_total_order_seek(nacre_readoptions_t* options, unsigned char value);
void nacre_readoptions_set_readahead_size(nacre_readoptions_t* options, size_t value);

nacre_writeoptions_t* nacre_writeoptions_create(void);
void nacre_writeoptions_destroy(nacre_writeoptions_t* options);
void nacre_writeoptions_set_sync(nacre_writeoptions_t* options, unsigned char value);
void nacre_writeoptions_disable_wal(nacre_writeoptions_t* options, unsigned char value);
void nacre_writeoptions_set_no_slowdown(nacre_writeoptions_t* options, unsigned char value);

nacre_flushoptions_t* nacre_flushoptions_create(void);
void nacre_flushoptions_destroy(nacre_flushoptions_t* options);
void nacre_flushoptions_set_wait(nacre_flushoptions_t* options, unsigned char value);

nacre_compactoptions_t* nacre_compactoptions_create(void);
void nacre_compactoptions_destroy(nacre_compactoptions_t* options);
void nacre_compactoptions_set_change_level(nacre_compactoptions_t* options, unsigned char value);
void nacre_compactoptions_set_target_level(nacre_compactoptions_t* options, int value);
void nacre_compactoptions_set_max_subcompactions(nacre_compactoptions_t* options, uint32_t value);

// ---- Comparators and loggers -----------------------------------------------------------------

/// The callbacks are called from many threads at once. Keys that compare equal must be the same
/// bytes. `name` answers a string that lives as long as the comparator; `destructor` (may be null)
/// is called with `state` at the end.
nacre_comparator_t* nacre_comparator_create(void* state, void (*destructor)(void* state),
                                            int (*compare)(void* state, const char* a,
                                                           size_t a_size, const char* b,
                                                           size_t b_size),
                                            const char* (*name)(void* state));
/// Memory nodes know these two, so they compact and flush what is ordered by them.
nacre_comparator_t* nacre_comparator_bytewise(void);
nacre_comparator_t* nacre_comparator_reverse_bytewise(void);
/// Null is allowed.
void nacre_comparator_destroy(nacre_comparator_t* comparator);

enum { nacre_log_debug = 0, nacre_log_info = 1, nacre_log_warn = 2, nacre_log_error = 3 };

/// `log` gets messages without a terminator, from any thread. `destructor` (may be null) is called
/// with `state` when nothing uses the logger any more.
nacre_logger_t* nacre_logger_create(void* state, void (*destructor)(void* state),
                                    void (*log)(void* state, int level, const char* message,
                                                size_t size));
/// Null is allowed.
void nacre_logger_destroy(nacre_logger_t* logger);

// ---- Checkpoints (nacre/checkpoint.h) --------------------------------------------------------

nacre_checkpointoptions_t* nacre_checkpointoptions_create(void);
void nacre_checkpointoptions_destroy(nacre_checkpointoptions_t* options);
void nacre_checkpointoptions_set_threads(nacre_checkpointoptions_t* options, int value);
void nacre_checkpointoptions_set_bytes_per_second(nacre_checkpointoptions_t* options,
                                                  uint64_t value);
/// Told of how far it has come; 0 of it ends the call with "Aborted". Null takes it away.
void nacre_checkpointoptions_set_progress(nacre_checkpointoptions_t* options, void* state,
                                          unsigned char (*progress)(void* state, uint64_t tables,
                                                                    uint64_t tables_done,
                                                                    uint64_t bytes,
                                                                    uint64_t bytes_done));

/// Answers the number of the new checkpoint; 0 on failure.
uint64_t nacre_checkpoint_create(nacre_t* db, const char* dir,
                                 const nacre_checkpointoptions_t* options, char** errptr);
/// `*count` of them, to be given to `nacre_checkpoint_list_destroy`. Null on failure.
nacre_checkpointinfo_t* nacre_checkpoint_list(const char* dir, size_t* count, char** errptr);
void nacre_checkpoint_list_destroy(nacre_checkpointinfo_t* infos);
/// The fields of element `i` of a list.
uint64_t nacre_checkpointinfo_number(const nacre_checkpointinfo_t* infos, size_t i);
uint64_t nacre_checkpointinfo_sequence(const nacre_checkpointinfo_t* infos, size_t i);
uint64_t nacre_checkpointinfo_tables(const nacre_checkpointinfo_t* infos, size_t i);
uint64_t nacre_checkpointinfo_bytes(const nacre_checkpointinfo_t* infos, size_t i);
uint64_t nacre_checkpointinfo_created_at(const nacre_checkpointinfo_t* infos, size_t i);
const char* nacre_checkpointinfo_database(const nacre_checkpointinfo_t* infos, size_t i);
void nacre_checkpoint_delete(const char* dir, uint64_t number, char** errptr);
/// `number` 0: the latest one.
void nacre_checkpoint_verify(const char* dir, uint64_t number,
                             const nacre_checkpointoptions_t* options, char** errptr);
void nacre_restore_db(const nacre_options_t* options, const char* name, const char* dir,
                      uint64_t number, const nacre_checkpointoptions_t* restore, char** errptr);

#ifdef __cplusplus
}  // extern "C"
#endif
