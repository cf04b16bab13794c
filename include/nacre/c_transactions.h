#pragma once

#include "nacre/c.h"

// Transactions for C. Names and manners are those of nacre/c.h; what each call does is said by
// nacre/utilities/transaction.h and its neighbours.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nacre_transactiondb_t nacre_transactiondb_t;
typedef struct nacre_transactiondb_options_t nacre_transactiondb_options_t;
typedef struct nacre_optimistictransactiondb_t nacre_optimistictransactiondb_t;
typedef struct nacre_transaction_t nacre_transaction_t;
typedef struct nacre_transaction_options_t nacre_transaction_options_t;
typedef struct nacre_optimistictransaction_options_t nacre_optimistictransaction_options_t;

// ---- Databases -------------------------------------------------------------------------------

/// Opens a database whose transactions take locks. Returns null on failure, as do those below.
nacre_transactiondb_t* nacre_transactiondb_open(const nacre_options_t* options,
                                                const nacre_transactiondb_options_t* db_options,
                                                const char* name, char** errptr);
nacre_transactiondb_t* nacre_transactiondb_open_column_families(
    const nacre_options_t* options, const nacre_transactiondb_options_t* db_options,
    const char* name, int num_families, const char* const* family_names,
    const nacre_options_t* const* family_options, nacre_column_family_handle_t** handles,
    char** errptr);
/// Returns a handle for all functions of nacre/c.h but `nacre_close`; its writes take the locks of
/// their keys. It lives as long as `db`.
nacre_t* nacre_transactiondb_get_db(nacre_transactiondb_t* db);
/// Transactions are destroyed before. Null is allowed.
void nacre_transactiondb_close(nacre_transactiondb_t* db);
/// Returns the `*count` transactions that are prepared and neither committed nor rolled back. The
/// caller destroys each handle and gives the array to `nacre_free`. The transactions themselves
/// stay with the code that began them or, if they were found at the opening, with the database.
nacre_transaction_t** nacre_transactiondb_get_prepared_transactions(nacre_transactiondb_t* db,
                                                                    size_t* count);

/// Checked at commit.
nacre_optimistictransactiondb_t* nacre_optimistictransactiondb_open(const nacre_options_t* options,
                                                                    const char* name,
                                                                    char** errptr);
nacre_optimistictransactiondb_t* nacre_optimistictransactiondb_open_column_families(
    const nacre_options_t* options, const char* name, int num_families,
    const char* const* family_names, const nacre_options_t* const* family_options,
    nacre_column_family_handle_t** handles, char** errptr);
/// As that of a database with locks.
nacre_t* nacre_optimistictransactiondb_get_db(nacre_optimistictransactiondb_t* db);
void nacre_optimistictransactiondb_close(nacre_optimistictransactiondb_t* db);

// ---- Transactions ----------------------------------------------------------------------------

/// Never null.
nacre_transaction_t* nacre_transaction_begin(nacre_transactiondb_t* db,
                                             const nacre_writeoptions_t* write_options,
                                             const nacre_transaction_options_t* options);
nacre_transaction_t* nacre_optimistictransaction_begin(
    nacre_optimistictransactiondb_t* db, const nacre_writeoptions_t* write_options,
    const nacre_optimistictransaction_options_t* options);
/// Rolls back what was neither committed nor prepared. Null is allowed.
void nacre_transaction_destroy(nacre_transaction_t* transaction);

void nacre_transaction_set_name(nacre_transaction_t* transaction, const char* name,
                                size_t name_size, char** errptr);
/// The caller's.
char* nacre_transaction_get_name(const nacre_transaction_t* transaction, size_t* name_size);
void nacre_transaction_prepare(nacre_transaction_t* transaction, char** errptr);
void nacre_transaction_commit(nacre_transaction_t* transaction, char** errptr);
void nacre_transaction_rollback(nacre_transaction_t* transaction, char** errptr);
void nacre_transaction_set_savepoint(nacre_transaction_t* transaction);
void nacre_transaction_rollback_to_savepoint(nacre_transaction_t* transaction, char** errptr);
void nacre_transaction_pop_savepoint(nacre_transaction_t* transaction, char** errptr);

/// Makes writes and gets for update fail for keys that others have written after this call.
void nacre_transaction_set_snapshot(nacre_transaction_t* transaction);
/// Returns the snapshot for `nacre_readoptions_set_snapshot`, or null. The transaction owns it: the
/// caller must not release it, and it is valid until the transaction sets another one or ends.
const nacre_snapshot_t* nacre_transaction_get_snapshot(nacre_transaction_t* transaction);

/// Reads see the transaction's own updates. A null family is the default one.
char* nacre_transaction_get(nacre_transaction_t* transaction, const nacre_readoptions_t* options,
                            const char* key, size_t key_size, size_t* value_size, char** errptr);
char* nacre_transaction_get_cf(nacre_transaction_t* transaction, const nacre_readoptions_t* options,
                               nacre_column_family_handle_t* family, const char* key,
                               size_t key_size, size_t* value_size, char** errptr);
char* nacre_transaction_get_for_update(nacre_transaction_t* transaction,
                                       const nacre_readoptions_t* options, const char* key,
                                       size_t key_size, size_t* value_size, unsigned char exclusive,
                                       char** errptr);
char* nacre_transaction_get_for_update_cf(nacre_transaction_t* transaction,
                                          const nacre_readoptions_t* options,
                                          nacre_column_family_handle_t* family, const char* key,
                                          size_t key_size, size_t* value_size,
                                          unsigned char exclusive, char** errptr);
/// The transaction must outlive the iterator.
nacre_iterator_t* nacre_transaction_create_iterator(nacre_transaction_t* transaction,
                                                    const nacre_readoptions_t* options);
nacre_iterator_t* nacre_transaction_create_iterator_cf(nacre_transaction_t* transaction,
                                                       const nacre_readoptions_t* options,
                                                       nacre_column_family_handle_t* family);

void nacre_transaction_put(nacre_transaction_t* transaction, const char* key, size_t key_size,
                           const char* value, size_t value_size, char** errptr);
void nacre_transaction_put_cf(nacre_transaction_t* transaction,
                              nacre_column_family_handle_t* family, const char* key,
                              size_t key_size, const char* value, size_t value_size, char** errptr);
void nacre_transaction_delete(nacre_transaction_t* transaction, const char* key, size_t key_size,
                              char** errptr);
void nacre_transaction_delete_cf(nacre_transaction_t* transaction,
                                 nacre_column_family_handle_t* family, const char* key,
                                 size_t key_size, char** errptr);
void nacre_transaction_singledelete(nacre_transaction_t* transaction, const char* key,
                                    size_t key_size, char** errptr);
void nacre_transaction_singledelete_cf(nacre_transaction_t* transaction,
                                       nacre_column_family_handle_t* family, const char* key,
                                       size_t key_size, char** errptr);
void nacre_transaction_merge(nacre_transaction_t* transaction, const char* key, size_t key_size,
                             const char* operand, size_t operand_size, char** errptr);
void nacre_transaction_merge_cf(nacre_transaction_t* transaction,
                                nacre_column_family_handle_t* family, const char* key,
                                size_t key_size, const char* operand, size_t operand_size,
                                char** errptr);

// ---- Options ---------------------------------------------------------------------------------

/// `destroy` takes null, here and below. Times are milliseconds.
nacre_transactiondb_options_t* nacre_transactiondb_options_create(void);
void nacre_transactiondb_options_destroy(nacre_transactiondb_options_t* options);
void nacre_transactiondb_options_set_max_num_locks(nacre_transactiondb_options_t* options,
                                                   int64_t value);
void nacre_transactiondb_options_set_num_stripes(nacre_transactiondb_options_t* options,
                                                 size_t value);
void nacre_transactiondb_options_set_transaction_lock_timeout(
    nacre_transactiondb_options_t* options, int64_t value);
void nacre_transactiondb_options_set_default_lock_timeout(nacre_transactiondb_options_t* options,
                                                          int64_t value);

nacre_transaction_options_t* nacre_transaction_options_create(void);
void nacre_transaction_options_destroy(nacre_transaction_options_t* options);
void nacre_transaction_options_set_set_snapshot(nacre_transaction_options_t* options,
                                                unsigned char value);
void nacre_transaction_options_set_deadlock_detect(nacre_transaction_options_t* options,
                                                   unsigned char value);
void nacre_transaction_options_set_lock_timeout(nacre_transaction_options_t* options,
                                                int64_t value);
void nacre_transaction_options_set_expiration(nacre_transaction_options_t* options, int64_t value);
void nacre_transaction_options_set_deadlock_detect_depth(nacre_transaction_options_t* options,
                                                         int64_t value);
void nacre_transaction_options_set_max_write_batch_size(nacre_transaction_options_t* options,
                                                        size_t value);
void nacre_transaction_options_set_skip_prepare(nacre_transaction_options_t* options,
                                                unsigned char value);

nacre_optimistictransaction_options_t* nacre_optimistictransaction_options_create(void);
void nacre_optimistictransaction_options_destroy(nacre_optimistictransaction_options_t* options);
void nacre_optimistictransaction_options_set_set_snapshot(
    nacre_optimistictransaction_options_t* options, unsigned char value);

#ifdef __cplusplus
}  // extern "C"
#endif
