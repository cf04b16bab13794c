// Goal: the functions of nacre/c_transactions.h do what the header says, for a program in C.
// Method: calls all of them (exports_test.py sees to that) over the pool argv[1] names, and checks
// each answer.

#include "nacre/c_callbacks.h"
#include "nacre/c_transactions.h"
#include "tests/adapters/c_client.h"

static nacre_transaction_options_t* locking;
static nacre_optimistictransaction_options_t* checking;

static const char* const kNames[2] = {"default", "more"};

static void TxnPut(nacre_transaction_t* transaction, const char* key, const char* value) {
  nacre_transaction_put(transaction, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

static void CheckTxnValue(nacre_transaction_t* transaction, nacre_column_family_handle_t* family,
                          const char* key, const char* value) {
  size_t size = 1;
  char* found =
      nacre_transaction_get_cf(transaction, reads, family, key, strlen(key), &size, &error);
  CHECK_OK(error);
  CheckText(found, size, value);
}

/// Each kind of update, in both families, and what the transaction reads of its own.
static void TestUpdates(nacre_t* db, nacre_transaction_t* transaction,
                        nacre_column_family_handle_t* more) {
  Put(db, "gone", "1");
  nacre_put_cf(db, writes, more, "gone", 4, "1", 1, &error);
  Put(db, "once", "1");
  nacre_put_cf(db, writes, more, "once", 4, "1", 1, &error);
  CHECK_OK(error);

  TxnPut(transaction, "a", "1");
  nacre_transaction_put_cf(transaction, more, "a", 1, "2", 1, &error);
  nacre_transaction_merge(transaction, "a", 1, "x", 1, &error);
  nacre_transaction_merge_cf(transaction, more, "a", 1, "y", 1, &error);
  nacre_transaction_delete(transaction, "gone", 4, &error);
  nacre_transaction_delete_cf(transaction, more, "gone", 4, &error);
  nacre_transaction_singledelete(transaction, "once", 4, &error);
  nacre_transaction_singledelete_cf(transaction, more, "once", 4, &error);
  CHECK_OK(error);
  CheckTxnValue(transaction, NULL, "a", "1;x");
  CheckTxnValue(transaction, more, "a", "2;y");
  CheckTxnValue(transaction, more, "gone", NULL);
  size_t size = 1;
  char* found = nacre_transaction_get(transaction, reads, "gone", 4, &size, &error);
  CHECK_OK(error);
  CheckText(found, size, NULL);
  found = nacre_transaction_get_for_update(transaction, reads, "a", 1, &size, 1, &error);
  CHECK_OK(error);
  CheckText(found, size, "1;x");
  found = nacre_transaction_get_for_update_cf(transaction, reads, more, "b", 1, &size, 0, &error);
  CHECK_OK(error);
  CheckText(found, size, NULL);

  nacre_iterator_t* iterator = nacre_transaction_create_iterator(transaction, reads);
  nacre_iter_seek_to_first(iterator);
  CheckAt(iterator, "a", "1;x");
  nacre_iter_next(iterator);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_destroy(iterator);
  nacre_readoptions_t* bounded = nacre_readoptions_create();
  nacre_readoptions_set_iterate_lower_bound(bounded, "b", 1);
  iterator = nacre_transaction_create_iterator_cf(transaction, bounded, more);
  nacre_readoptions_destroy(bounded);
  nacre_iter_seek_to_first(iterator);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_destroy(iterator);

  // The key is not there until it is committed.
  CheckValue(db, reads, "a", NULL);
  CheckValue(db, reads, "gone", "1");

  nacre_transaction_set_savepoint(transaction);
  TxnPut(transaction, "undone", "1");
  nacre_transaction_rollback_to_savepoint(transaction, &error);
  CHECK_OK(error);
  CheckTxnValue(transaction, NULL, "undone", NULL);
  nacre_transaction_set_savepoint(transaction);
  TxnPut(transaction, "stays", "1");
  nacre_transaction_pop_savepoint(transaction, &error);
  CHECK_OK(error);
  nacre_transaction_pop_savepoint(transaction, &error);
  CHECK_FAILED(nacre_code_not_found);
  nacre_transaction_rollback_to_savepoint(transaction, &error);
  CHECK_FAILED(nacre_code_not_found);

  nacre_transaction_commit(transaction, &error);
  CHECK_OK(error);
  nacre_transaction_destroy(transaction);
  CheckValue(db, reads, "a", "1;x");
  CheckValue(db, reads, "gone", NULL);
  CheckValue(db, reads, "once", NULL);
  CheckValue(db, reads, "undone", NULL);
  CheckValue(db, reads, "stays", "1");
  found = nacre_get_cf(db, reads, more, "a", 1, &size, &error);
  CHECK_OK(error);
  CheckText(found, size, "2;y");
}

/// Snapshots, and what is rolled back; `transaction` has set one at its beginning.
static void TestSnapshots(nacre_t* db, nacre_transaction_t* transaction) {
  const nacre_snapshot_t* snapshot = nacre_transaction_get_snapshot(transaction);
  CHECK(snapshot != NULL);
  CHECK(nacre_snapshot_get_sequence_number(snapshot) == nacre_get_latest_sequence_number(db));
  Put(db, "snap", "late");
  nacre_readoptions_t* then = nacre_readoptions_create();
  nacre_readoptions_set_snapshot(then, snapshot);
  size_t size = 1;
  CHECK(nacre_transaction_get(transaction, then, "snap", 4, &size, &error) == NULL);
  CHECK_OK(error);
  CheckTxnValue(transaction, NULL, "snap", "late");
  nacre_readoptions_destroy(then);
  nacre_transaction_set_snapshot(transaction);
  TxnPut(transaction, "snap", "never");
  nacre_transaction_rollback(transaction, &error);
  CHECK_OK(error);
  nacre_transaction_destroy(transaction);
  CheckValue(db, reads, "snap", "late");
  nacre_delete(db, writes, "snap", 4, &error);
  CHECK_OK(error);
}

static void TestOptimistic(void) {
  const nacre_options_t* const both[2] = {options, options};
  nacre_column_family_handle_t* handles[2];
  nacre_optimistictransactiondb_t* db = nacre_optimistictransactiondb_open_column_families(
      options, "checked", 2, kNames, both, handles, &error);
  CHECK_OK(error);
  nacre_t* base = nacre_optimistictransactiondb_get_db(db);
  TestUpdates(base, nacre_optimistictransaction_begin(db, writes, checking), handles[1]);
  nacre_optimistictransaction_options_set_set_snapshot(checking, 1);
  TestSnapshots(base, nacre_optimistictransaction_begin(db, writes, checking));

  // Another one writes what this one has read for update.
  nacre_transaction_t* transaction = nacre_optimistictransaction_begin(db, writes, checking);
  size_t size = 0;
  nacre_free(nacre_transaction_get_for_update(transaction, reads, "a", 1, &size, 1, &error));
  CHECK_OK(error);
  TxnPut(transaction, "b", "1");
  Put(base, "a", "2");
  nacre_transaction_commit(transaction, &error);
  CHECK_FAILED(nacre_code_busy);
  nacre_transaction_set_name(transaction, "name", 4, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_transaction_prepare(transaction, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_transaction_destroy(transaction);
  CheckValue(base, reads, "b", NULL);
  for (int i = 0; i < 2; ++i) nacre_column_family_handle_destroy(handles[i]);
  nacre_optimistictransactiondb_close(db);

  db = nacre_optimistictransactiondb_open(options, "alone", &error);
  CHECK_OK(error);
  CHECK(nacre_optimistictransactiondb_open(options, "alone", &error) == NULL);
  CHECK_FAILED(nacre_code_busy);
  nacre_optimistictransactiondb_close(db);
  nacre_optimistictransactiondb_close(NULL);
}

/// What others meet that want a key which a transaction has.
static void TestLocks(nacre_transactiondb_t* db) {
  nacre_t* base = nacre_transactiondb_get_db(db);
  nacre_transaction_options_set_lock_timeout(locking, 0);
  nacre_transaction_t* first = nacre_transaction_begin(db, writes, locking);
  nacre_transaction_t* second = nacre_transaction_begin(db, writes, locking);
  TxnPut(first, "locked", "1");
  nacre_transaction_put(second, "locked", 6, "2", 1, &error);
  CHECK_FAILED(nacre_code_timed_out);
  nacre_put(base, writes, "locked", 6, "3", 1, &error);
  CHECK_FAILED(nacre_code_timed_out);
  nacre_delete_range(base, writes, "a", 1, "z", 1, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_transaction_destroy(first);
  nacre_transaction_put(second, "locked", 6, "2", 1, &error);
  CHECK_OK(error);
  nacre_transaction_commit(second, &error);
  CHECK_OK(error);
  nacre_transaction_destroy(second);
  nacre_transaction_destroy(NULL);
  CheckValue(base, reads, "locked", "2");

  nacre_transaction_options_set_max_write_batch_size(locking, 100);
  first = nacre_transaction_begin(db, writes, locking);
  char value[200];
  memset(value, 'v', sizeof(value));
  nacre_transaction_put(first, "long", 4, value, sizeof(value), &error);
  CHECK_FAILED(nacre_code_aborted);
  nacre_transaction_destroy(first);
  nacre_transaction_options_set_max_write_batch_size(locking, 0);

  // Two locks may be had at once.
  first = nacre_transaction_begin(db, writes, locking);
  TxnPut(first, "1", "");
  TxnPut(first, "2", "");
  nacre_transaction_put(first, "3", 1, "", 0, &error);
  CHECK_FAILED(nacre_code_busy);
  nacre_transaction_destroy(first);
}

/// Prepared transactions outlive the database that they were prepared in.
static void TestPreparing(nacre_transactiondb_t* db) {
  nacre_transaction_t* transaction = nacre_transaction_begin(db, writes, locking);
  nacre_transaction_set_name(transaction, "", 0, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_transaction_set_name(transaction, "xid", 3, &error);
  CHECK_OK(error);
  size_t size = 0;
  char* name = nacre_transaction_get_name(transaction, &size);
  CHECK(size == 3 && memcmp(name, "xid", 3) == 0);
  nacre_free(name);
  TxnPut(transaction, "prepared", "1");
  nacre_transaction_commit(transaction, &error);
  CHECK_FAILED(nacre_code_invalid_argument);  // `skip_prepare` is 0.
  nacre_transaction_prepare(transaction, &error);
  CHECK_OK(error);
  nacre_transaction_destroy(transaction);
}

static void TestRecovery(nacre_transactiondb_t* db) {
  size_t count = 0;
  nacre_transaction_t** found = nacre_transactiondb_get_prepared_transactions(db, &count);
  CHECK(count == 1);
  nacre_t* base = nacre_transactiondb_get_db(db);
  CheckValue(base, reads, "prepared", NULL);
  nacre_transaction_commit(found[0], &error);
  CHECK_OK(error);
  nacre_transaction_destroy(found[0]);
  nacre_free(found);
  CheckValue(base, reads, "prepared", "1");
}

static void TestLocking(void) {
  nacre_transactiondb_options_t* how = nacre_transactiondb_options_create();
  nacre_transactiondb_options_set_num_stripes(how, 4);
  nacre_transactiondb_options_set_transaction_lock_timeout(how, 2000);
  nacre_transactiondb_options_set_default_lock_timeout(how, 1);
  const nacre_options_t* const both[2] = {options, options};
  nacre_column_family_handle_t* handles[2];
  nacre_transactiondb_t* db = nacre_transactiondb_open_column_families(
      options, how, "locked", 2, kNames, both, handles, &error);
  CHECK_OK(error);
  nacre_transaction_options_set_deadlock_detect(locking, 1);
  nacre_transaction_options_set_deadlock_detect_depth(locking, 10);
  nacre_transaction_options_set_expiration(locking, -1);
  TestUpdates(nacre_transactiondb_get_db(db), nacre_transaction_begin(db, writes, locking),
              handles[1]);
  nacre_transaction_options_set_set_snapshot(locking, 1);
  TestSnapshots(nacre_transactiondb_get_db(db), nacre_transaction_begin(db, writes, locking));
  nacre_transaction_options_set_set_snapshot(locking, 0);
  for (int i = 0; i < 2; ++i) nacre_column_family_handle_destroy(handles[i]);
  nacre_transactiondb_close(db);

  nacre_transactiondb_options_set_max_num_locks(how, 2);
  nacre_transaction_options_set_skip_prepare(locking, 0);
  db = nacre_transactiondb_open(options, how, "two locks", &error);
  CHECK_OK(error);
  TestLocks(db);
  TestPreparing(db);
  nacre_transactiondb_close(db);
  db = nacre_transactiondb_open(options, how, "two locks", &error);
  CHECK_OK(error);
  TestRecovery(db);
  CHECK(nacre_transactiondb_open(options, how, "two locks", &error) == NULL);
  CHECK_FAILED(nacre_code_busy);
  nacre_transactiondb_close(db);
  nacre_transactiondb_close(NULL);
  nacre_transactiondb_options_destroy(how);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  SetUp(argv[1]);
  nacre_options_set_create_if_missing(options, 1);
  nacre_options_set_create_missing_column_families(options, 1);
  nacre_mergeoperator_t* sums = nacre_mergeoperator_create_by_name("stringappend:;", &error);
  CHECK_OK(error);
  nacre_options_set_merge_operator(options, sums);
  nacre_mergeoperator_destroy(sums);
  locking = nacre_transaction_options_create();
  checking = nacre_optimistictransaction_options_create();

  TestOptimistic();
  TestLocking();

  nacre_transaction_options_destroy(locking);
  nacre_optimistictransaction_options_destroy(checking);
  TearDown();
  puts("all is well");
  return 0;
}
