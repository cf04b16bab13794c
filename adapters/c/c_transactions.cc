#include "nacre/c_transactions.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "adapters/c/c_column_family.h"
#include "adapters/c/c_error.h"
#include "adapters/c/c_iterator.h"
#include "adapters/c/c_transaction_types.h"
#include "adapters/common/c_memory.h"

using nacre::CopyToMalloc;
using nacre::DescribeFamilies;
using nacre::FamilyOf;
using nacre::NewHandle;
using nacre::Slice;
using nacre::Status;
using nacre::Succeeded;
using nacre::Wrap;

namespace {

/// Opens databases of both kinds; `open` fills in handles and database.
template <typename Handle, typename Database, typename Open>
Handle* OpenDatabase(const nacre_options_t* options, char** errptr, const Open& open) {
  std::unique_ptr<Database> db;
  if (!Succeeded(options->invalid, errptr) || !Succeeded(open(&db), errptr)) return nullptr;
  auto result = std::make_unique<Handle>();
  result->rep = db.get();
  result->db.rep = std::move(db);
  return result.release();
}

template <typename Handle, typename Database, typename Open>
Handle* OpenFamilies(const nacre_options_t* options, int count, const char* const* names,
                     const nacre_options_t* const* family_options,
                     nacre_column_family_handle_t** handles, char** errptr, const Open& open) {
  std::vector<nacre::ColumnFamilyDescriptor> families;
  if (!Succeeded(DescribeFamilies(count, names, family_options, &families), errptr)) return nullptr;
  std::vector<nacre::ColumnFamilyHandle*> opened;
  Handle* const db = OpenDatabase<Handle, Database>(
      options, errptr,
      [&](std::unique_ptr<Database>* made) { return open(families, &opened, made); });
  if (db == nullptr) return nullptr;
  for (size_t i = 0; i < opened.size(); ++i) handles[i] = NewHandle(db->rep, opened[i]);
  return db;
}

nacre_transaction_t* Own(std::unique_ptr<nacre::Transaction> transaction) {
  auto result = std::make_unique<nacre_transaction_t>();
  result->rep = transaction.get();
  result->owned = std::move(transaction);
  return result.release();
}

/// What a read answers: null if there is nothing.
char* ReadValue(const Status& status, const nacre::PinnableSlice& value, size_t* value_size,
                char** errptr) {
  *value_size = 0;
  if (status.IsNotFound() || !Succeeded(status, errptr)) return nullptr;
  *value_size = value.size();
  return CopyToMalloc(value.ToStringView());
}

using Families = std::vector<nacre::ColumnFamilyDescriptor>;
using Handles = std::vector<nacre::ColumnFamilyHandle*>;

}  // namespace

nacre_transactiondb_t* nacre_transactiondb_open(const nacre_options_t* options,
                                                const nacre_transactiondb_options_t* db_options,
                                                const char* name, char** errptr) {
  return OpenDatabase<nacre_transactiondb_t, nacre::TransactionDB>(
      options, errptr, [&](std::unique_ptr<nacre::TransactionDB>* db) {
        return nacre::TransactionDB::Open(options->rep, db_options->rep, name, db);
      });
}

nacre_transactiondb_t* nacre_transactiondb_open_column_families(
    const nacre_options_t* options, const nacre_transactiondb_options_t* db_options,
    const char* name, int count, const char* const* family_names,
    const nacre_options_t* const* family_options, nacre_column_family_handle_t** handles,
    char** errptr) {
  const auto open = [&](const Families& families, Handles* opened,
                        std::unique_ptr<nacre::TransactionDB>* db) {
    return nacre::TransactionDB::Open(options->rep, db_options->rep, name, families, opened, db);
  };
  return OpenFamilies<nacre_transactiondb_t, nacre::TransactionDB>(
      options, count, family_names, family_options, handles, errptr, open);
}

nacre_t* nacre_transactiondb_get_db(nacre_transactiondb_t* db) { return &db->db; }

void nacre_transactiondb_close(nacre_transactiondb_t* db) {
  std::unique_ptr<nacre_transactiondb_t> closed(db);
}

nacre_transaction_t** nacre_transactiondb_get_prepared_transactions(nacre_transactiondb_t* db,
                                                                    size_t* count) {
  std::vector<nacre::Transaction*> prepared;
  db->rep->GetAllPreparedTransactions(&prepared);
  *count = prepared.size();
  auto* const list =
      static_cast<nacre_transaction_t**>(std::malloc((prepared.size() + 1) * sizeof(void*)));
  for (size_t i = 0; i < prepared.size(); ++i) {
    auto transaction = std::make_unique<nacre_transaction_t>();
    transaction->rep = prepared[i];
    list[i] = transaction.release();
  }
  return list;
}

nacre_optimistictransactiondb_t* nacre_optimistictransactiondb_open(const nacre_options_t* options,
                                                                    const char* name,
                                                                    char** errptr) {
  return OpenDatabase<nacre_optimistictransactiondb_t, nacre::OptimisticTransactionDB>(
      options, errptr, [&](std::unique_ptr<nacre::OptimisticTransactionDB>* db) {
        return nacre::OptimisticTransactionDB::Open(options->rep, name, db);
      });
}

nacre_optimistictransactiondb_t* nacre_optimistictransactiondb_open_column_families(
    const nacre_options_t* options, const char* name, int count, const char* const* family_names,
    const nacre_options_t* const* family_options, nacre_column_family_handle_t** handles,
    char** errptr) {
  const auto open = [&](const Families& families, Handles* opened,
                        std::unique_ptr<nacre::OptimisticTransactionDB>* db) {
    return nacre::OptimisticTransactionDB::Open(options->rep, {}, name, families, opened, db);
  };
  return OpenFamilies<nacre_optimistictransactiondb_t, nacre::OptimisticTransactionDB>(
      options, count, family_names, family_options, handles, errptr, open);
}

nacre_t* nacre_optimistictransactiondb_get_db(nacre_optimistictransactiondb_t* db) {
  return &db->db;
}

void nacre_optimistictransactiondb_close(nacre_optimistictransactiondb_t* db) {
  std::unique_ptr<nacre_optimistictransactiondb_t> closed(db);
}

nacre_transaction_t* nacre_transaction_begin(nacre_transactiondb_t* db,
                                             const nacre_writeoptions_t* write_options,
                                             const nacre_transaction_options_t* options) {
  return Own(db->rep->BeginTransaction(write_options->rep, options->rep));
}

nacre_transaction_t* nacre_optimistictransaction_begin(
    nacre_optimistictransactiondb_t* db, const nacre_writeoptions_t* write_options,
    const nacre_optimistictransaction_options_t* options) {
  return Own(db->rep->BeginTransaction(write_options->rep, options->rep));
}

void nacre_transaction_destroy(nacre_transaction_t* transaction) {
  std::unique_ptr<nacre_transaction_t> destroyed(transaction);
}

void nacre_transaction_set_name(nacre_transaction_t* transaction, const char* name,
                                size_t name_size, char** errptr) {
  (void)Succeeded(transaction->rep->SetName(std::string(name, name_size)), errptr);
}

char* nacre_transaction_get_name(const nacre_transaction_t* transaction, size_t* name_size) {
  const std::string name = transaction->rep->GetName();
  *name_size = name.size();
  return CopyToMalloc(name);
}

void nacre_transaction_prepare(nacre_transaction_t* transaction, char** errptr) {
  (void)Succeeded(transaction->rep->Prepare(), errptr);
}

void nacre_transaction_commit(nacre_transaction_t* transaction, char** errptr) {
  (void)Succeeded(transaction->rep->Commit(), errptr);
}

void nacre_transaction_rollback(nacre_transaction_t* transaction, char** errptr) {
  (void)Succeeded(transaction->rep->Rollback(), errptr);
}

void nacre_transaction_set_savepoint(nacre_transaction_t* transaction) {
  transaction->rep->SetSavePoint();
}

void nacre_transaction_rollback_to_savepoint(nacre_transaction_t* transaction, char** errptr) {
  (void)Succeeded(transaction->rep->RollbackToSavePoint(), errptr);
}

void nacre_transaction_pop_savepoint(nacre_transaction_t* transaction, char** errptr) {
  (void)Succeeded(transaction->rep->PopSavePoint(), errptr);
}

void nacre_transaction_set_snapshot(nacre_transaction_t* transaction) {
  transaction->rep->SetSnapshot();
}

const nacre_snapshot_t* nacre_transaction_get_snapshot(nacre_transaction_t* transaction) {
  transaction->snapshot.rep = transaction->rep->GetSnapshot();
  return transaction->snapshot.rep == nullptr ? nullptr : &transaction->snapshot;
}

char* nacre_transaction_get(nacre_transaction_t* transaction, const nacre_readoptions_t* options,
                            const char* key, size_t key_size, size_t* value_size, char** errptr) {
  return nacre_transaction_get_cf(transaction, options, nullptr, key, key_size, value_size, errptr);
}

char* nacre_transaction_get_cf(nacre_transaction_t* transaction, const nacre_readoptions_t* options,
                               nacre_column_family_handle_t* family, const char* key,
                               size_t key_size, size_t* value_size, char** errptr) {
  nacre::PinnableSlice value;
  const Status status =
      transaction->rep->Get(options->rep, FamilyOf(family), Slice(key, key_size), &value);
  return ReadValue(status, value, value_size, errptr);
}

char* nacre_transaction_get_for_update(nacre_transaction_t* transaction,
                                       const nacre_readoptions_t* options, const char* key,
                                       size_t key_size, size_t* value_size, unsigned char exclusive,
                                       char** errptr) {
  return nacre_transaction_get_for_update_cf(transaction, options, nullptr, key, key_size,
                                             value_size, exclusive, errptr);
}

char* nacre_transaction_get_for_update_cf(nacre_transaction_t* transaction,
                                          const nacre_readoptions_t* options,
                                          nacre_column_family_handle_t* family, const char* key,
                                          size_t key_size, size_t* value_size,
                                          unsigned char exclusive, char** errptr) {
  nacre::PinnableSlice value;
  const Status status = transaction->rep->GetForUpdate(
      options->rep, FamilyOf(family), Slice(key, key_size), &value, exclusive != 0);
  return ReadValue(status, value, value_size, errptr);
}

nacre_iterator_t* nacre_transaction_create_iterator(nacre_transaction_t* transaction,
                                                    const nacre_readoptions_t* options) {
  return nacre_transaction_create_iterator_cf(transaction, options, nullptr);
}

nacre_iterator_t* nacre_transaction_create_iterator_cf(nacre_transaction_t* transaction,
                                                       const nacre_readoptions_t* options,
                                                       nacre_column_family_handle_t* family) {
  std::shared_ptr<const IteratorBounds> bounds;
  const nacre::ReadOptions with_bounds = nacre::WithBounds(*options, &bounds);
  return Wrap(transaction->rep->GetIterator(with_bounds, FamilyOf(family)), std::move(bounds));
}

void nacre_transaction_put(nacre_transaction_t* transaction, const char* key, size_t key_size,
                           const char* value, size_t value_size, char** errptr) {
  nacre_transaction_put_cf(transaction, nullptr, key, key_size, value, value_size, errptr);
}

void nacre_transaction_put_cf(nacre_transaction_t* transaction,
                              nacre_column_family_handle_t* family, const char* key,
                              size_t key_size, const char* value, size_t value_size,
                              char** errptr) {
  (void)Succeeded(
      transaction->rep->Put(FamilyOf(family), Slice(key, key_size), Slice(value, value_size)),
      errptr);
}

void nacre_transaction_delete(nacre_transaction_t* transaction, const char* key, size_t key_size,
                              char** errptr) {
  nacre_transaction_delete_cf(transaction, nullptr, key, key_size, errptr);
}

void nacre_transaction_delete_cf(nacre_transaction_t* transaction,
                                 nacre_column_family_handle_t* family, const char* key,
                                 size_t key_size, char** errptr) {
  (void)Succeeded(transaction->rep->Delete(FamilyOf(family), Slice(key, key_size)), errptr);
}

void nacre_transaction_singledelete(nacre_transaction_t* transaction, const char* key,
                                    size_t key_size, char** errptr) {
  nacre_transaction_singledelete_cf(transaction, nullptr, key, key_size, errptr);
}

void nacre_transaction_singledelete_cf(nacre_transaction_t* transaction,
                                       nacre_column_family_handle_t* family, const char* key,
                                       size_t key_size, char** errptr) {
  (void)Succeeded(transaction->rep->SingleDelete(FamilyOf(family), Slice(key, key_size)), errptr);
}

void nacre_transaction_merge(nacre_transaction_t* transaction, const char* key, size_t key_size,
                             const char* operand, size_t operand_size, char** errptr) {
  nacre_transaction_merge_cf(transaction, nullptr, key, key_size, operand, operand_size, errptr);
}

void nacre_transaction_merge_cf(nacre_transaction_t* transaction,
                                nacre_column_family_handle_t* family, const char* key,
                                size_t key_size, const char* operand, size_t operand_size,
                                char** errptr) {
  (void)Succeeded(
      transaction->rep->Merge(FamilyOf(family), Slice(key, key_size), Slice(operand, operand_size)),
      errptr);
}
