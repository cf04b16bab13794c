#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/python/core_batch.h"
#include "adapters/python/core_database.h"
#include "adapters/python/core_error.h"
#include "adapters/python/core_iterator.h"
#include "adapters/python/core_options.h"
#include "adapters/python/core_transaction.h"
#include "nacre/checkpoint.h"
#include "nacre/pool.h"
#include "nacre/statistics.h"
#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "nacre/version.h"

// The module nacre._core: what the Python files of the package, which users see, are made of. Their
// docstrings say what each call does.

namespace nacre::python {

namespace py = pybind11;

namespace {

using PoolPtr = std::shared_ptr<Pool>;
/// One that is open, or the URI of one that is opened with the other options.
using PoolLike = std::variant<PoolPtr, std::string>;

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

/// What a keyspace has beside options: boundaries, coordinator, member_address and, in
/// milliseconds, member_lease.
using Keyspace = std::tuple<std::vector<py::bytes>, std::string, std::string, uint64_t>;

std::optional<ShardedOptions> ShardedOptionsOf(const std::optional<Keyspace>& keyspace,
                                               const Options& options) {
  if (!keyspace.has_value()) return std::nullopt;
  ShardedOptions sharded(options);
  const auto& [boundaries, coordinator, member_address, lease_millis] = *keyspace;
  for (const py::bytes& key : boundaries) sharded.boundaries.emplace_back(key);
  sharded.coordinator = coordinator;
  sharded.member_address = member_address;
  sharded.member_lease = std::chrono::milliseconds(lease_millis);
  return sharded;
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
                                       const std::vector<std::pair<py::object, py::object>>& ends,
                                       const FamilyPtr& family) {
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
    return open->GetApproximateSizes(db->HandleOf(family), ranges.data(),
                                     static_cast<int>(ranges.size()), sizes.data());
  });
  return sizes;
}

std::shared_ptr<Iterator> MakeIterator(const std::shared_ptr<Database>& db, const ReadFrom& from,
                                       const py::object& start, const py::object& stop,
                                       bool reverse) {
  const auto make = [&](DB* open, const ReadOptions& options) {
    return open->NewIterator(options, db->HandleOf(from.family));
  };
  const auto alone = std::make_shared<Turn>();
  return std::make_shared<Iterator>(db, from, Iterator::Range{CopyOf(start), CopyOf(stop), reverse},
                                    alone, make);
}

/// Options of each, by name; what they do not name is as in `options`.
Database::Families FamiliesOf(const std::vector<std::pair<std::string, py::dict>>& named,
                              const Options& options) {
  Database::Families families;
  for (const auto& [name, own] : named) {
    SetFamilyOptions(own, &families.emplace_back(name, options).options);
  }
  return families;
}

void BindWrites(py::class_<Database, std::shared_ptr<Database>>* database) {
  database
      ->def("put",
            [](Database* db, const py::object& key, const py::object& value, bool sync,
               bool disable_wal, const FamilyPtr& family) {
              const ByteView key_bytes(key);
              const ByteView value_bytes(value);
              db->CheckWith([&](DB* open) {
                return open->Put(WriteOptionsOf(sync, disable_wal), db->HandleOf(family),
                                 key_bytes.slice(), value_bytes.slice());
              });
            })
      .def("merge",
           [](Database* db, const py::object& key, const py::object& operand, bool sync,
              bool disable_wal, const FamilyPtr& family) {
             const ByteView key_bytes(key);
             const ByteView operand_bytes(operand);
             db->CheckWith([&](DB* open) {
               return open->Merge(WriteOptionsOf(sync, disable_wal), db->HandleOf(family),
                                  key_bytes.slice(), operand_bytes.slice());
             });
           })
      .def("delete",
           [](Database* db, const py::object& key, bool sync, bool disable_wal,
              const FamilyPtr& family) {
             const ByteView bytes(key);
             db->CheckWith([&](DB* open) {
               return open->Delete(WriteOptionsOf(sync, disable_wal), db->HandleOf(family),
                                   bytes.slice());
             });
           })
      .def("single_delete",
           [](Database* db, const py::object& key, bool sync, bool disable_wal,
              const FamilyPtr& family) {
             const ByteView bytes(key);
             db->CheckWith([&](DB* open) {
               return open->SingleDelete(WriteOptionsOf(sync, disable_wal), db->HandleOf(family),
                                         bytes.slice());
             });
           })
      .def("delete_range",
           [](Database* db, const py::object& start, const py::object& stop, bool sync,
              bool disable_wal, const FamilyPtr& family) {
             const ByteView first(start);
             const ByteView last(stop);
             db->CheckWith([&](DB* open) {
               return open->DeleteRange(WriteOptionsOf(sync, disable_wal), db->HandleOf(family),
                                        first.slice(), last.slice());
             });
           })
      .def("write", [](Database* db, Batch* batch, bool sync, bool disable_wal) {
        batch->Write(db, WriteOptionsOf(sync, disable_wal));
      });
}

void BindDatabase(py::module_* module) {
  using Db = std::shared_ptr<Database>;
  py::class_<ReadFrom>(*module, "ReadFrom")
      .def(py::init<std::shared_ptr<Snapshot>, bool, FamilyPtr>(), py::arg("snapshot").none(true),
           py::arg("linearizable"), py::arg("family").none(true));
  py::class_<Family, FamilyPtr>(*module, "Family")
      .def_property_readonly("name", [](const Family& family) { return ToBytes(family.name()); })
      .def_property_readonly("id", &Family::id);
  py::class_<Database, Db> database(*module, "Database");
  BindWrites(&database);
  database.def("close", &Database::Close)
      .def_property_readonly("closed", &Database::closed)
      .def("get", &Database::Get)
      .def("multi_get", &Database::MultiGet)
      .def("contains", &Database::Contains)
      .def("create_family",
           [](Database* db, const std::string& name, const py::dict& named) {
             ColumnFamilyOptions options = db->options();
             SetFamilyOptions(named, &options);
             return db->CreateFamily(options, name);
           })
      .def("drop_family",
           [](Database* db, const FamilyPtr& family) {
             db->CheckWith([&](DB* open) { return open->DropColumnFamily(db->HandleOf(family)); });
           })
      .def("iterator", &MakeIterator)
      .def("snapshot", [](const Db& db) { return std::make_shared<Snapshot>(db); })
      .def("flush",
           [](Database* db, bool wait, const FamilyPtr& family) {
             db->CheckWith(
                 [&](DB* open) { return open->Flush({.wait = wait}, db->HandleOf(family)); });
           })
      .def("flush_wal",
           [](Database* db, bool sync) {
             db->CheckWith([&](DB* open) { return open->FlushWAL(sync); });
           })
      .def("compact_range",
           [](Database* db, const py::object& start, const py::object& stop,
              const FamilyPtr& family) {
             const OptionalKey first(start);
             const OptionalKey last(stop);
             db->CheckWith([&](DB* open) {
               return open->CompactRange({}, db->HandleOf(family), first.get(), last.get());
             });
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

/// The counters by name.
std::map<std::string, uint64_t> TickersOf(Statistics* statistics) {
  std::map<std::string, uint64_t> counts;
  for (const auto& [ticker, name] : TickersNameMap) {
    counts[name] = statistics->getTickerCount(ticker);
  }
  return counts;
}

std::map<std::string, std::map<std::string, double>> HistogramsOf(Statistics* statistics) {
  std::map<std::string, std::map<std::string, double>> all;
  for (const auto& [histogram, name] : HistogramsNameMap) {
    HistogramData data;
    statistics->histogramData(histogram, &data);
    all[name] = {{"median", data.median},
                 {"percentile95", data.percentile95},
                 {"percentile99", data.percentile99},
                 {"average", data.average},
                 {"standard_deviation", data.standard_deviation},
                 {"min", data.min},
                 {"max", data.max},
                 {"count", static_cast<double>(data.count)},
                 {"sum", static_cast<double>(data.sum)}};
  }
  return all;
}

/// Names may be any bytes.
py::list ToBytesList(const std::vector<std::string>& names) {
  py::list list;
  for (const std::string& name : names) list.append(ToBytes(name));
  return list;
}

void BindParts(py::module_* module) {
  py::class_<Pool, PoolPtr>(*module, "Pool")
      .def_property_readonly("uri", &Pool::uri)
      .def_property_readonly("node_count", &Pool::node_count);
  py::class_<Batch>(*module, "Batch")
      .def(py::init<>())
      .def("put", &Batch::Put)
      .def("merge", &Batch::Merge)
      .def("delete", &Batch::Delete)
      .def("single_delete", &Batch::SingleDelete)
      .def("delete_range", &Batch::DeleteRange)
      .def("clear", &Batch::Clear)
      .def("count", &Batch::Count);
  py::class_<Snapshot, std::shared_ptr<Snapshot>>(*module, "Snapshot")
      .def_property_readonly("sequence_number", &Snapshot::sequence_number);
  py::class_<Statistics, std::shared_ptr<Statistics>>(
      *module, "Statistics",
      "Counts what the databases do that are opened with the option `statistics`, together.")
      .def(py::init(&CreateDBStatistics))
      .def("tickers", &TickersOf, "All counters, by names such as \"rocksdb.number.keys.written\".")
      .def("histograms", &HistogramsOf,
           "All histograms, each as \"median\", \"percentile99\", \"count\", \"sum\" and so on.")
      .def(
          "reset", [](Statistics* statistics) { Check(statistics->Reset()); },
          "Sets everything to 0.")
      .def("text", &Statistics::ToString, "A line for each counter and histogram.");
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
  module->def("version", &GetNacreVersionAsString, py::arg("with_commit") = false,
              "The library's version; with commit and kind of build, if asked for.");
  py::enum_<Database::Kind>(*module, "Kind")
      .value("OWNER", Database::Kind::kOwner)
      .value("READ_ONLY", Database::Kind::kReadOnly)
      .value("SECONDARY", Database::Kind::kSecondary)
      .value("OPTIMISTIC", Database::Kind::kOptimistic)
      .value("LOCKING", Database::Kind::kLocking);
  module->def("open_pool", &OpenPool);
  module->def("open", [](const PoolLike& pool, const std::string& name, Database::Kind kind,
                         const std::vector<std::pair<std::string, py::dict>>& families,
                         const std::optional<Keyspace>& keyspace, const py::dict& named) {
    const Options options = OptionsOf(pool, named);
    return Database::Open(options, ShardedOptionsOf(keyspace, options), name, kind,
                          FamiliesOf(families, options));
  });
  module->def("list_families",
              [](const PoolLike& pool, const std::string& name, const py::dict& named) {
                const Options options = OptionsOf(pool, named);
                std::vector<std::string> names;
                {
                  const py::gil_scoped_release release;
                  Check(DB::ListColumnFamilies(options, name, &names));
                }
                return ToBytesList(names);
              });
  module->def("destroy", [](const PoolLike& pool, const std::string& name,
                            const std::optional<Keyspace>& keyspace, const py::dict& named) {
    const Options options = OptionsOf(pool, named);
    const std::optional<ShardedOptions> sharded = ShardedOptionsOf(keyspace, options);
    const py::gil_scoped_release release;
    Check(sharded.has_value() ? DestroyShardedDB(name, *sharded) : DestroyDB(name, options));
  });
  module->def("list_databases", [](const PoolLike& pool, const py::dict& named) {
    const Options options = OptionsOf(pool, named);
    std::vector<std::string> names;
    {
      const py::gil_scoped_release release;
      Check(ListDBs(options, &names));
    }
    return ToBytesList(names);
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
#ifdef NACRE_PYTHON_ETCD
  UseEtcd();
#endif
  RegisterErrors();
  BindParts(&module);
  BindDatabase(&module);
  BindTransactions(&module);
  BindFunctions(&module);
}

}  // namespace nacre::python
