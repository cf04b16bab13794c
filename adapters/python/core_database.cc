#include "adapters/python/core_database.h"

namespace nacre::python {

namespace py = pybind11;

namespace {

/// With the database's lock.
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

std::shared_ptr<Database> Database::Open(const Options& options, const std::string& name,
                                         Kind kind) {
  py::gil_scoped_release release;
  std::unique_ptr<DB> db;
  switch (kind) {
    case Kind::kOwner:
      Check(DB::Open(options, name, &db));
      break;
    case Kind::kReadOnly:
      Check(DB::OpenForReadOnly(options, name, &db));
      break;
    case Kind::kSecondary:
      Check(DB::OpenAsSecondary(options, name, &db));
      break;
  }
  return std::make_shared<Database>(std::move(db));
}

Database::~Database() {
  try {
    Close();
  } catch (const StatusFailure&) {
    // Nobody is left to hear of it; the database has logged it.
  }
}

void Database::Close() {
  py::gil_scoped_release release;
  closing_.store(true, std::memory_order_release);
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  if (db_ == nullptr) return;
  for (Dependent* dependent : dependents_) dependent->End(db_.get());
  dependents_.clear();
  const Status status = db_->Close();
  db_.reset();
  Check(status);
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
    status = db_->Get(ReadOptionsOf(from), bytes.slice(), &value);
  }
  if (status.IsNotFound()) return py::none();
  Check(status);
  return ToBytes(value);
}

bool Database::Contains(const py::handle& key, const ReadFrom& from) {
  const ByteView bytes(key);
  return With([&](DB* db) {
    PinnableSlice value;
    const Status status = db->Get(ReadOptionsOf(from), bytes.slice(), &value);
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
    db_->MultiGet(ReadOptionsOf(from), slices.size(), slices.data(), values.data(),
                  statuses.data());
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

std::optional<std::string> Database::Property(const std::string& name) {
  return With([&](DB* db) {
    std::string value;
    return db->GetProperty(name, &value) ? std::optional(value) : std::nullopt;
  });
}

std::optional<uint64_t> Database::IntProperty(const std::string& name) {
  return With([&](DB* db) {
    uint64_t value = 0;
    return db->GetIntProperty(name, &value) ? std::optional(value) : std::nullopt;
  });
}

}  // namespace nacre::python
