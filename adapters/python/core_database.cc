#include "adapters/python/core_database.h"

#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/transaction_db.h"

namespace nacre::python {

namespace py = pybind11;

namespace {

/// Opens a database that has transactions, or none.
Status OpenAs(Database::Kind kind, const Options& options, const std::string& name,
              const Database::Families& families, std::vector<ColumnFamilyHandle*>* handles,
              std::unique_ptr<DB>* db) {
  switch (kind) {
    case Database::Kind::kReadOnly:
      return DB::OpenForReadOnly(options, name, families, handles, db);
    case Database::Kind::kSecondary:
      return DB::OpenAsSecondary(options, name, families, handles, db);
    case Database::Kind::kOptimistic: {
      std::unique_ptr<OptimisticTransactionDB> opened;
      const Status status =
          OptimisticTransactionDB::Open(options, {}, name, families, handles, &opened);
      *db = std::move(opened);
      return status;
    }
    case Database::Kind::kLocking: {
      std::unique_ptr<TransactionDB> opened;
      const Status status = TransactionDB::Open(options, {}, name, families, handles, &opened);
      *db = std::move(opened);
      return status;
    }
    case Database::Kind::kOwner:
      break;
  }
  return DB::Open(options, name, families, handles, db);
}

Status OpenKeyspaceAs(Database::Kind kind, const ShardedOptions& options, const std::string& name,
                      const Database::Families& families, std::vector<ColumnFamilyHandle*>* handles,
                      std::unique_ptr<DB>* db) {
  switch (kind) {
    case Database::Kind::kOptimistic: {
      std::unique_ptr<OptimisticTransactionDB> opened;
      const Status status =
          OptimisticTransactionDB::Open(options, name, families, handles, &opened);
      *db = std::move(opened);
      return status;
    }
    case Database::Kind::kLocking: {
      std::unique_ptr<TransactionDB> opened;
      const Status status = TransactionDB::Open(options, {}, name, families, handles, &opened);
      *db = std::move(opened);
      return status;
    }
    case Database::Kind::kOwner: {
      std::unique_ptr<ShardedDB> opened;
      const Status status = ShardedDB::Open(options, name, families, handles, &opened);
      *db = std::move(opened);
      return status;
    }
    default:
      return Status::NotSupported("a keyspace has no followers");
  }
}

/// Requires the database's lock.
ReadOptions ReadOptionsOf(const ReadFrom& from) {
  ReadOptions options;
  if (from.snapshot != nullptr) options.snapshot = from.snapshot->Get();
  options.linearizable = from.linearizable;
  return options;
}

}  // namespace

Snapshot::Snapshot(std::shared_ptr<Database> database) : database_(std::move(database)) {
  database_->With([this](DB* db) {
    snapshot_ = db->GetSnapshot();
    sequence_number_ = snapshot_->GetSequenceNumber();
    database_->Add(this);
  });
}

Snapshot::~Snapshot() {
  database_->IfOpen([this](DB* db) {
    database_->Remove(this);
    End(db);
  });
}

void Snapshot::End(DB* db) {
  db->ReleaseSnapshot(snapshot_);
  snapshot_ = nullptr;
}

const nacre::Snapshot* Snapshot::Get() const { return snapshot_; }

Family::Family(std::shared_ptr<Database> database, ColumnFamilyHandle* handle)
    : database_(std::move(database)),
      handle_(handle),
      name_(handle->GetName()),
      id_(handle->GetID()) {
  database_->Add(this);
}

Family::~Family() {
  database_->IfOpen([this](DB* db) {
    database_->Remove(this);
    End(db);
  });
}

void Family::End(DB* db) {
  db->DestroyColumnFamilyHandle(handle_).IgnoreError();
  handle_ = nullptr;
}

ColumnFamilyHandle* Family::Get(const Database* database) const {
  if (database == database_.get()) return handle_;
  throw StatusFailure(
      Status::InvalidArgument("column family " + name_ + " is of another database"));
}

std::pair<std::shared_ptr<Database>, std::vector<FamilyPtr>> Database::Open(
    const Options& options, const std::optional<ShardedOptions>& sharded, const std::string& name,
    Kind kind, const Families& others) {
  py::gil_scoped_release release;
  Families families = {{kDefaultColumnFamilyName, options}};
  families.insert(families.end(), others.begin(), others.end());
  std::unique_ptr<DB> db;
  std::vector<ColumnFamilyHandle*> handles;
  Check(sharded.has_value() ? OpenKeyspaceAs(kind, *sharded, name, families, &handles, &db)
                            : OpenAs(kind, options, name, families, &handles, &db));
  Check(db->DestroyColumnFamilyHandle(handles.front()));  // Null stands for it.
  auto database = std::make_shared<Database>(std::move(db), options, kind);
  std::vector<FamilyPtr> wrapped;
  for (size_t i = 1; i < handles.size(); ++i) {
    wrapped.push_back(std::make_shared<Family>(database, handles[i]));
  }
  return {std::move(database), std::move(wrapped)};
}

FamilyPtr Database::CreateFamily(const ColumnFamilyOptions& options, const std::string& name) {
  return With([&](DB* db) {
    ColumnFamilyHandle* handle = nullptr;
    Check(db->CreateColumnFamily(options, name, &handle));
    return std::make_shared<Family>(shared_from_this(), handle);
  });
}

Database::~Database() {
  try {
    Close();
  } catch (const StatusFailure&) {
    // There is no caller left to tell; the database has logged it.
  }
}

void Database::Close() {
  py::gil_scoped_release release;
  closing_.store(true, std::memory_order_release);
  const std::lock_guard<std::mutex> one(close_mutex_);
  std::unique_ptr<DB> db;
  {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    if (db_ == nullptr) return;
    for (Dependent* dependent : dependents_) dependent->End(db_.get());
    dependents_.clear();
    db = std::move(db_);
  }
  // This runs without the lock: a merge operator in Python may still be called, and may end
  // dependents.
  Check(db->Close());
}

std::shared_lock<std::shared_mutex> Database::Enter() {
  constexpr const char* kMessage = "the database is closed";
  if (closed()) throw StatusFailure(kClosed, kMessage);
  std::shared_lock<std::shared_mutex> lock(mutex_);
  if (db_ == nullptr) throw StatusFailure(kClosed, kMessage);
  return lock;
}

void Database::Add(Dependent* dependent) {
  const std::lock_guard<std::mutex> lock(dependents_mutex_);
  dependents_.insert(dependent);
}

void Database::Remove(Dependent* dependent) {
  const std::lock_guard<std::mutex> lock(dependents_mutex_);
  dependents_.erase(dependent);
}

py::object Database::Get(const py::handle& key, const ReadFrom& from) {
  const ByteView bytes(key);
  std::shared_lock<std::shared_mutex> lock;
  PinnableSlice value;  // Given back before the lock.
  Status status;
  {
    py::gil_scoped_release release;
    lock = Enter();
    status = db_->Get(ReadOptionsOf(from), HandleOf(from.family), bytes.slice(), &value);
  }
  if (status.IsNotFound()) return py::none();
  Check(status);
  return ToBytes(value);
}

bool Database::Contains(const py::handle& key, const ReadFrom& from) {
  const ByteView bytes(key);
  return With([&](DB* db) {
    PinnableSlice value;
    const Status status =
        db->Get(ReadOptionsOf(from), HandleOf(from.family), bytes.slice(), &value);
    if (status.IsNotFound()) return false;
    Check(status);
    return true;
  });
}

py::list Database::MultiGet(const py::sequence& keys, const ReadFrom& from) {
  std::vector<ByteView> bytes;
  std::vector<Slice> slices;
  for (const py::handle key : keys) {
    bytes.emplace_back(key);
    slices.push_back(bytes.back().slice());
  }
  std::shared_lock<std::shared_mutex> lock;
  std::vector<PinnableSlice> values(slices.size());
  std::vector<Status> statuses(slices.size());
  {
    py::gil_scoped_release release;
    lock = Enter();
    db_->MultiGet(ReadOptionsOf(from), HandleOf(from.family), slices.size(), slices.data(),
                  values.data(), statuses.data());
  }
  py::list found;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (statuses[i].IsNotFound()) {
      found.append(py::none());
      continue;
    }
    Check(statuses[i]);
    found.append(ToBytes(values[i]));
  }
  return found;
}

py::object Database::Property(const std::string& name, const FamilyPtr& family) {
  std::string value;
  const bool known = With([&](DB* db) { return db->GetProperty(HandleOf(family), name, &value); });
  return known ? ToText(value) : py::none();
}

std::optional<uint64_t> Database::IntProperty(const std::string& name, const FamilyPtr& family) {
  return With([&](DB* db) {
    uint64_t value = 0;
    return db->GetIntProperty(HandleOf(family), name, &value) ? std::optional(value) : std::nullopt;
  });
}

}  // namespace nacre::python
