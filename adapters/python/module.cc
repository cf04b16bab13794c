#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/python/core_database.h"
#include "adapters/python/core_error.h"
#include "adapters/python/core_iterator.h"
#include "adapters/python/core_options.h"
#include "nacre/checkpoint.h"
#include "nacre/pool.h"

// The module nacre._core: what the Python files of the package, which users see, are made of. Their
// docstrings say what each call does.

namespace nacre::python {

namespace py = pybind11;

namespace {

using PoolPtr = std::shared_ptr<Pool>;
/// One that is open, or the URI of one that is opened with the other options.
using PoolLike = std::variant<PoolPtr, std::string>;

/// A batch; not to be changed while a call writes it.
class Batch {
 public:
  void Put(const py::handle& key, const py::handle& value) {
    const ByteView key_bytes(key);
    const ByteView value_bytes(value);
    Check(Changeable()->Put(key_bytes.slice(), value_bytes.slice()));
  }
  void Delete(const py::handle& key) {
    const ByteView bytes(key);
    Check(Changeable()->Delete(bytes.slice()));
  }
  void Clear() { Changeable()->Clear(); }
  uint32_t Count() const { return batch_.Count(); }

  void Write(Database* db, const WriteOptions& options) {
    WriteBatch* batch = Changeable();
    writing_ = true;
    struct Finally {
      bool* writing;
      ~Finally() { *writing = false; }
    } finally{&writing_};
    db->CheckWith([&](DB* open) { return open->Write(options, batch); });
  }

 private:
  WriteBatch* Changeable() {
    if (writing_) throw StatusFailure(Status::Busy("another thread is writing this batch"));
    return &batch_;
  }

  WriteBatch batch_;
  bool writing_ = false;  ///< Guarded by the interpreter's lock.
};

WriteOptions WriteOptionsOf(bool sync, bool disable_wal) {
  return {.sync = sync, .disable_wal = disable_wal};
}

Options OptionsOf(const PoolLike& pool, const py::dict& named) {
  Options options;
  if (const auto* open = std::get_if<PoolPtr>(&pool)) {
    options.pool = *open;
  } else {
    options.pool_uri = std::get<std::string>(pool);
  }
  SetOptions(named, &options);
  return options;
}

PoolPtr OpenPool(const std::string& uri, const std::string& secret, int max_queue_pairs_per_node) {
  const py::gil_scoped_release release;
  PoolPtr pool;
  Check(Pool::Open(uri, {.secret = secret, .max_queue_pairs_per_node = max_queue_pairs_per_node},
                   &pool));
  return pool;
}

/// Null for None.
struct OptionalKey {
  explicit OptionalKey(const py::object& key) {
    if (!key.is_none()) slice = bytes.emplace(key).slice();
  }
  const Slice* get() const { return bytes.has_value() ? &slice : nullptr; }

  std::optional<ByteView> bytes;
  Slice slice;
};

std::vector<uint64_t> ApproximateSizes(Database* db,
                                       const std::vector<std::pair<py::object, py::object>>& ends) {
  std::vector<ByteView> bytes;
  std::vector<nacre::Range> ranges;
  ranges.reserve(ends.size());
  for (const auto& [start, stop] : ends) {
    bytes.emplace_back(start);
    const Slice first = bytes.back().slice();
    bytes.emplace_back(stop);
    ranges.push_back({first, bytes.back().slice()});
  }
  std::vector<uint64_t> sizes(ranges.size());
  db->CheckWith([&](DB* open) {
    return open->GetApproximateSizes(ranges.data(), static_cast<int>(ranges.size()), sizes.data());
  });
  return sizes;
}

std::shared_ptr<Iterator> MakeIterator(const std::shared_ptr<Database>& db, const ReadFrom& from,
                                       const py::object& start, const py::object& stop,
                                       bool reverse) {
  const auto copy = [](const py::object& key) -> std::optional<std::string> {
    if (key.is_none()) return std::nullopt;
    return std::string(ByteView(key).slice().ToStringView());
  };
  return std::make_shared<Iterator>(db, from, Iterator::Range{copy(start), copy(stop), reverse});
}

void BindDatabase(py::module_* module) {
  using Db = std::shared_ptr<Database>;
  py::class_<ReadFrom>(*module, "ReadFrom")
      .def(py::init<std::shared_ptr<Snapshot>, bool>(), py::arg("snapshot").none(true),
           py::arg("linearizable"));
  py::class_<Database, Db>(*module, "Database")
      .def("close", &Database::Close)
      .def_property_readonly("closed", &Database::closed)
      .def("get", &Database::Get)
      .def("multi_get", &Database::MultiGet)
      .def("contains", &Database::Contains)
      .def("put",
           [](Database* db, const py::object& key, const py::object& value, bool sync,
              bool disable_wal) {
             const ByteView key_bytes(key);
             const ByteView value_bytes(value);
             db->CheckWith([&](DB* open) {
               return open->Put(WriteOptionsOf(sync, disable_wal), key_bytes.slice(),
                                value_bytes.slice());
             });
           })
      .def("delete",
           [](Database* db, const py::object& key, bool sync, bool disable_wal) {
             const ByteView bytes(key);
             db->CheckWith([&](DB* open) {
               return open->Delete(WriteOptionsOf(sync, disable_wal), bytes.slice());
             });
           })
      .def("write", [](Database* db, Batch* batch, bool sync,
                       bool disable_wal) { batch->Write(db, WriteOptionsOf(sync, disable_wal)); })
      .def("iterator", &MakeIterator)
      .def("snapshot", [](const Db& db) { return std::make_shared<Snapshot>(db); })
      .def("flush",
           [](Database* db, bool wait) {
             db->CheckWith([&](DB* open) { return open->Flush({.wait = wait}); });
           })
      .def("flush_wal",
           [](Database* db, bool sync) {
             db->CheckWith([&](DB* open) { return open->FlushWAL(sync); });
           })
      .def("compact_range",
           [](Database* db, const py::object& start, const py::object& stop) {
             const OptionalKey first(start);
             const OptionalKey last(stop);
             db->CheckWith(
                 [&](DB* open) { return open->CompactRange({}, first.get(), last.get()); });
           })
      .def("wait_for_compact",
           [](Database* db) { db->CheckWith([](DB* open) { return open->WaitForCompact(); }); })
      .def("verify_checksum",
           [](Database* db) { db->CheckWith([](DB* open) { return open->VerifyChecksum(); }); })
      .def("catch_up",
           [](Database* db) {
             db->CheckWith([](DB* open) { return open->TryCatchUpWithPrimary(); });
           })
      .def("get_property", &Database::Property)
      .def("get_int_property", &Database::IntProperty)
      .def("approximate_sizes", &ApproximateSizes)
      .def("latest_sequence_number",
           [](Database* db) {
             return db->With([](DB* open) { return open->GetLatestSequenceNumber(); });
           })
      .def("checkpoint",
           [](Database* db, const std::string& folder, int threads, uint64_t bytes_per_second) {
             CheckpointInfo info;
             db->CheckWith([&](DB* open) {
               std::unique_ptr<Checkpoint> checkpoint;
               NACRE_RETURN_IF_ERROR(Checkpoint::Create(open, &checkpoint));
               return checkpoint->CreateCheckpoint(
                   folder, {.threads = threads, .bytes_per_second = bytes_per_second}, &info);
             });
             return info.number;
           });
}

void BindParts(py::module_* module) {
  py::class_<Pool, PoolPtr>(*module, "Pool")
      .def_property_readonly("uri", &Pool::uri)
      .def_property_readonly("node_count", &Pool::node_count);
  py::class_<Batch>(*module, "Batch")
      .def(py::init<>())
      .def("put", &Batch::Put)
      .def("delete", &Batch::Delete)
      .def("clear", &Batch::Clear)
      .def("count", &Batch::Count);
  py::class_<Snapshot, std::shared_ptr<Snapshot>>(*module, "Snapshot")
      .def_property_readonly("sequence_number", &Snapshot::sequence_number);
  py::enum_<Iterator::Part>(*module, "Part")
      .value("KEYS", Iterator::Part::kKeys)
      .value("VALUES", Iterator::Part::kValues)
      .value("ITEMS", Iterator::Part::kItems);
  py::class_<Iterator, std::shared_ptr<Iterator>>(*module, "Iterator")
      .def("fetch", &Iterator::Fetch)
      .def("seek", &Iterator::Seek)
      .def("close", &Iterator::Close);
}

void BindFunctions(py::module_* module) {
  py::enum_<Database::Kind>(*module, "Kind")
      .value("OWNER", Database::Kind::kOwner)
      .value("READ_ONLY", Database::Kind::kReadOnly)
      .value("SECONDARY", Database::Kind::kSecondary);
  module->def("open_pool", &OpenPool);
  module->def("open", [](const PoolLike& pool, const std::string& name, Database::Kind kind,
                         const py::dict& options) {
    return Database::Open(OptionsOf(pool, options), name, kind);
  });
  module->def("destroy", [](const PoolLike& pool, const std::string& name, const py::dict& named) {
    const Options options = OptionsOf(pool, named);
    const py::gil_scoped_release release;
    Check(DestroyDB(name, options));
  });
  module->def("list_databases", [](const PoolLike& pool, const py::dict& named) {
    const Options options = OptionsOf(pool, named);
    const py::gil_scoped_release release;
    std::vector<std::string> names;
    Check(ListDBs(options, &names));
    return names;
  });
  module->def("restore", [](const PoolLike& pool, const std::string& name,
                            const std::string& folder, uint64_t number, const py::dict& named) {
    const Options options = OptionsOf(pool, named);
    const py::gil_scoped_release release;
    Check(RestoreDB(options, name, folder, {.checkpoint = number}));
  });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "What the package nacre is made of; not to be used by itself.";
  RegisterErrors();
  BindParts(&module);
  BindDatabase(&module);
  BindFunctions(&module);
}

}  // namespace nacre::python
