#include "adapters/python/core_transaction.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/transaction_db.h"

namespace nacre::python {

namespace py = pybind11;

namespace {

std::unique_ptr<nacre::Transaction> Begin(DB* db, Database::Kind kind, const WriteOptions& options,
                                          const Transaction::How& how) {
  if (kind == Database::Kind::kOptimistic) {
    OptimisticTransactionOptions its;
    its.set_snapshot = how.set_snapshot;
    return static_cast<OptimisticTransactionDB*>(db)->BeginTransaction(options, its);
  }
  if (kind != Database::Kind::kLocking) {
    throw StatusFailure(Status::NotSupported("the database was opened without transactions"));
  }
  TransactionOptions its;
  its.set_snapshot = how.set_snapshot;
  its.deadlock_detect = how.deadlock_detect;
  its.lock_timeout = how.lock_timeout;
  its.expiration = how.expiration;
  return static_cast<TransactionDB*>(db)->BeginTransaction(options, its);
}

}  // namespace

Transaction::Transaction(std::shared_ptr<Database> database, const WriteOptions& options,
                         const How& how)
    : database_(std::move(database)) {
  database_->With([&](DB* db) {
    transaction_ = Begin(db, database_->kind(), options, how);
    database_->Add(this);
  });
}

Transaction::~Transaction() {
  database_->IfOpen([this](DB* db) {
    database_->Remove(this);
    End(db);
  });
}

void Transaction::End(DB*) {
  const std::lock_guard<std::recursive_mutex> lock(turn_->mutex);
  turn_->CutIterators();
  transaction_.reset();
}

nacre::Transaction* Transaction::Open() const {
  if (transaction_ == nullptr) throw StatusFailure(kClosed, "the transaction has ended");
  return transaction_.get();
}

ReadOptions Transaction::Reads() const {
  ReadOptions options;
  options.snapshot = Open()->GetSnapshot();
  return options;
}

py::object Transaction::Get(const py::handle& key, const FamilyPtr& family, bool update,
                            bool exclusive) {
  const ByteView bytes(key);
  std::string value;
  Status status;
  CheckWith([&](nacre::Transaction* transaction) {
    ColumnFamilyHandle* const handle = database_->HandleOf(family);
    status = update ? transaction->GetForUpdate(Reads(), handle, bytes.slice(), &value, exclusive)
                    : transaction->Get(Reads(), handle, bytes.slice(), &value);
    return status.IsNotFound() ? Status::OK() : status;
  });
  if (status.IsNotFound()) return py::none();
  return ToBytes(value);
}

py::list Transaction::MultiGet(const py::sequence& keys, const FamilyPtr& family) {
  std::vector<ByteView> bytes;
  std::vector<Slice> slices;
  for (const py::handle key : keys) slices.push_back(bytes.emplace_back(key).slice());
  std::vector<PinnableSlice> values(slices.size());
  std::vector<Status> statuses(slices.size());
  std::vector<std::string> found;
  CheckWith([&](nacre::Transaction* transaction) {
    transaction->MultiGet(Reads(), database_->HandleOf(family), slices.size(), slices.data(),
                          values.data(), statuses.data());
    for (PinnableSlice& value : values) found.push_back(value.ToString());
    values.clear();  // What they hold is the database's.
    return Status::OK();
  });
  py::list answers;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (!statuses[i].IsNotFound()) Check(statuses[i]);
    answers.append(statuses[i].ok() ? py::object(ToBytes(found[i])) : py::none());
  }
  return answers;
}

std::shared_ptr<Iterator> Transaction::Iterate(const FamilyPtr& family, Iterator::Range range) {
  const auto make = [&](DB*, const ReadOptions& options) {
    ReadOptions with_snapshot = options;
    with_snapshot.snapshot = Open()->GetSnapshot();
    return Open()->GetIterator(with_snapshot, database_->HandleOf(family));
  };
  return std::make_shared<Iterator>(database_, ReadFrom{}, std::move(range), turn_, make);
}

void Transaction::Commit() {
  CheckWith([this](nacre::Transaction* transaction) {
    turn_->CutIterators();
    NACRE_RETURN_IF_ERROR(transaction->Commit());
    transaction_.reset();
    return Status::OK();
  });
}

void Transaction::Rollback() {
  CheckWith([this](nacre::Transaction* transaction) {
    turn_->CutIterators();
    NACRE_RETURN_IF_ERROR(transaction->Rollback());
    transaction_.reset();
    return Status::OK();
  });
}

void Transaction::RollbackToSavePoint() {
  CheckWith([this](nacre::Transaction* transaction) {
    turn_->CutIterators();
    return transaction->RollbackToSavePoint();
  });
}

void Transaction::SetSnapshot() {
  CheckWith([](nacre::Transaction* transaction) {
    transaction->SetSnapshot();
    return Status::OK();
  });
}

bool Transaction::ended() const {
  const py::gil_scoped_release release;
  const std::lock_guard<std::recursive_mutex> lock(turn_->mutex);
  return transaction_ == nullptr;
}

void BindTransactions(py::module_* module) {
  using Ptr = std::shared_ptr<Transaction>;
  py::class_<Transaction, Ptr>(*module, "Transaction")
      .def(py::init([](const std::shared_ptr<Database>& database, bool sync, bool disable_wal,
                       bool set_snapshot, bool deadlock_detect, int64_t lock_timeout,
                       int64_t expiration) {
        const Transaction::How how = {set_snapshot, deadlock_detect, lock_timeout, expiration};
        return std::make_shared<Transaction>(
            database, WriteOptions{.sync = sync, .disable_wal = disable_wal}, how);
      }))
      .def_property_readonly("ended", &Transaction::ended)
      .def("get", &Transaction::Get)
      .def("multi_get", &Transaction::MultiGet)
      .def("set_snapshot", &Transaction::SetSnapshot)
      .def("iterator",
           [](Transaction* transaction, const FamilyPtr& family, const py::object& start,
              const py::object& stop, bool reverse) {
             return transaction->Iterate(family, {CopyOf(start), CopyOf(stop), reverse});
           })
      .def("put",
           [](Transaction* self, const py::object& key, const py::object& value,
              const FamilyPtr& family) {
             const ByteView key_bytes(key);
             const ByteView value_bytes(value);
             self->CheckWith([&](nacre::Transaction* open) {
               return open->Put(self->HandleOf(family), key_bytes.slice(), value_bytes.slice());
             });
           })
      .def("merge",
           [](Transaction* self, const py::object& key, const py::object& operand,
              const FamilyPtr& family) {
             const ByteView key_bytes(key);
             const ByteView operand_bytes(operand);
             self->CheckWith([&](nacre::Transaction* open) {
               return open->Merge(self->HandleOf(family), key_bytes.slice(), operand_bytes.slice());
             });
           })
      .def("delete",
           [](Transaction* self, const py::object& key, const FamilyPtr& family) {
             const ByteView bytes(key);
             self->CheckWith([&](nacre::Transaction* open) {
               return open->Delete(self->HandleOf(family), bytes.slice());
             });
           })
      .def("single_delete",
           [](Transaction* self, const py::object& key, const FamilyPtr& family) {
             const ByteView bytes(key);
             self->CheckWith([&](nacre::Transaction* open) {
               return open->SingleDelete(self->HandleOf(family), bytes.slice());
             });
           })
      .def("set_save_point",
           [](Transaction* self) {
             self->CheckWith([](nacre::Transaction* open) {
               open->SetSavePoint();
               return Status::OK();
             });
           })
      .def("rollback_to_save_point", &Transaction::RollbackToSavePoint)
      .def("commit", &Transaction::Commit)
      .def("rollback", &Transaction::Rollback);
}

}  // namespace nacre::python
