#include "sharding/shard_opener.h"

#include <algorithm>
#include <set>
#include <utility>

#include "db/copy/database_copier.h"
#include "db/db_impl.h"
#include "db/family/hidden_family.h"
#include "nacre/convenience.h"
#include "sharding/reshaping/shard_reshaper.h"
#include "util/clock.h"
#include "util/exceptions.h"
#include "util/named_point.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

/// How often the keyspace was opened, which each opening writes.
constexpr char kOpeningsKey[] = "openings";

/// The map takes a few kilobytes and no work. It shares what it can with the shards.
Options MapOptions(const ShardedOptions& options) {
  Options of_map{DBOptions(options), ColumnFamilyOptions()};
  of_map.comparator = BytewiseComparator();
  of_map.write_buffer_size = 64 << 10;
  of_map.listeners.clear();
  of_map.statistics.reset();
  of_map.record_cache_size = 0;
  of_map.create_missing_column_families = false;
  return of_map;
}

/// `InvalidArgument` if a database would be taken for a shard of a new keyspace.
Status CheckNamesAreFree(const Options& options, const std::string& keyspace) {
  std::vector<std::string> databases;
  NACRE_RETURN_IF_ERROR(ListDBs(options, &databases));
  for (const std::string& database : databases) {
    if (!ShardMap::IsShardOf(database, keyspace)) continue;
    return Status::InvalidArgument("keyspace " + keyspace + ": there is a database " + database +
                                   ", which would be taken for one of its shards");
  }
  return Status::OK();
}

}  // namespace

ShardOpener::ShardOpener(const ShardedOptions& options, std::string name,
                         std::vector<ColumnFamilyDescriptor> families,
                         std::shared_ptr<LocalOwner> owner)
    : options_(options),
      name_(std::move(name)),
      families_(std::move(families)),
      owner_(std::move(owner)) {}

// ---- The map ------------------------------------------------------------------------------------

Status ShardOpener::OpenMap(ShardMap* map) {
  const std::string database = ShardMap::DatabaseOfMap(name_);
  std::vector<std::string> databases;
  NACRE_RETURN_IF_ERROR(ListDBs(options_, &databases));
  if (std::ranges::find(databases, database) == databases.end()) {
    NACRE_RETURN_IF_ERROR(CheckNamesAreFree(options_, name_));
  }
  NACRE_RETURN_IF_ERROR(DB::Open(MapOptions(options_), database, &map_db_));
  const Status status = ReadMap(map);
  const bool is_new = status.IsNotFound();
  if (!is_new) NACRE_RETURN_IF_ERROR(status);
  if (is_new || map->being_made()) {
    // Or an earlier process died while it made the shards, which nothing was written to.
    if (!is_new) {
      for (const ShardMap::Shard& shard : map->shards()) {
        NACRE_RETURN_IF_ERROR(DestroyDB(ShardMap::DatabaseOf(name_, shard.id), options_));
      }
    }
    NACRE_RETURN_IF_ERROR(MakeShards(map));
  }
  return Status::OK();
}

Status ShardOpener::OpenMadeMap(ShardMap* map) {
  Options existing = MapOptions(options_);
  existing.create_if_missing = false;
  existing.error_if_exists = false;
  NACRE_RETURN_IF_ERROR(DB::Open(existing, ShardMap::DatabaseOfMap(name_), &map_db_));
  NACRE_RETURN_IF_ERROR(ReadMap(map));
  return map->being_made() ? Status::Incomplete("the keyspace is being made") : Status::OK();
}

Status ShardOpener::ReadMap(ShardMap* map) const {
  std::string bytes;
  NACRE_RETURN_IF_ERROR(map_db_->Get({}, ShardMap::kKey, &bytes));
  return ShardMap::Parse(bytes, options_.comparator, map)
      .WithContext(ShardMap::DatabaseOfMap(name_));
}

Status ShardOpener::CountOpening(uint64_t* opening) {
  std::string bytes;
  const Status status = map_db_->Get({}, kOpeningsKey, &bytes);
  if (!status.ok() && !status.IsNotFound()) return status;
  *opening = status.ok() ? std::stoull(bytes) + 1 : 1;
  WriteOptions durable;
  durable.sync = true;
  return map_db_->Put(durable, kOpeningsKey, std::to_string(*opening));
}

Status ShardOpener::CheckMap() const {
  std::string bytes;
  return map_db_->Get({}, ShardMap::kKey, &bytes);
}

Status ShardOpener::CloseMap() { return map_db_ == nullptr ? Status::OK() : map_db_->Close(); }

Status ShardOpener::MakeShards(ShardMap* map) {
  NACRE_RETURN_IF_ERROR(ShardMap::Make(options_.comparator, options_.boundaries, map));
  // From here on databases of these names are this keyspace's.
  NACRE_RETURN_IF_ERROR(CheckNamesAreFree(options_, name_));
  NACRE_RETURN_IF_ERROR(SaveMap(*map));
  NACRE_POINT("keyspace.map-begun");
  Options create = options_;
  create.create_if_missing = true;
  create.error_if_exists = true;
  std::vector<Status> statuses(map->size());
  const auto make = [&](size_t index) {
    statuses[index] = CatchAll([&]() -> Status {
      const std::string database = ShardMap::DatabaseOf(name_, map->shards()[index].id);
      std::unique_ptr<DB> db;
      NACRE_RETURN_IF_ERROR(DB::Open(create, database, &db));
      // Now, so that families that are made later have the same ids in all shards.
      LocalShard shard(map->shards()[index].id, std::move(db), ContextOfShards(),
                       map->family_set());
      NACRE_RETURN_IF_ERROR(shard.batches()->MakeFamily());
      return shard.Close();
    });
  };
  RunTogether("nacre-shards", map->size(), make, kAtOnce);
  for (const Status& status : statuses) NACRE_RETURN_IF_ERROR(status);
  NACRE_POINT("keyspace.shards-made");
  map->SetMade();
  return SaveMap(*map);
}

Status ShardOpener::SaveMap(const ShardMap& map) {
  WriteOptions durable;
  durable.sync = true;
  NACRE_RETURN_IF_ERROR(map_db_->Put(durable, ShardMap::kKey, map.Serialize()));
  // An embedded pool has no log.
  return map_db_->Flush({});
}

// ---- Shards -------------------------------------------------------------------------------------

LocalShard::Context ShardOpener::ContextOfShards() const {
  return {.comparator = options_.comparator,
          .clock = Clock::System(),
          .operation_timeout = options_.operation_timeout,
          .owner = owner_,
          .may_move = !options_.coordinator.empty()};
}

const ColumnFamilyDescriptor* ShardOpener::Find(const std::string& family) const {
  const auto found = std::ranges::find(families_, family, &ColumnFamilyDescriptor::name);
  return found == families_.end() ? nullptr : &*found;
}

Status ShardOpener::CheckFamilies(const ShardMap& map) const {
  const bool may_miss = options_.create_missing_column_families;
  std::set<std::string> named;
  for (const ColumnFamilyDescriptor& family : families_) {
    if (!named.insert(family.name).second) {
      return Status::InvalidArgument("column family " + family.name + " is named twice");
    }
    if (family.name == ShardMap::kPreparedFamily || (!may_miss && !map.HasFamily(family.name))) {
      return Status::InvalidArgument("Column family not found: " + family.name);
    }
  }
  std::string missing;
  for (const ShardMap::Family& family : map.families()) {
    if (family.name == ShardMap::kPreparedFamily) continue;
    if (!named.contains(family.name)) missing += (missing.empty() ? "" : ", ") + family.name;
  }
  return missing.empty() ? Status::OK()
                         : Status::InvalidArgument("Column families not opened: " + missing);
}

ColumnFamilyOptions ShardOpener::PreparedFamilyOptions() const {
  ColumnFamilyOptions options = HiddenFamilyOptions(options_);
  options.comparator = options_.comparator;
  return options;
}

Status ShardOpener::DescriptorOf(const ShardMap::Family& family,
                                 ColumnFamilyDescriptor* descriptor) const {
  descriptor->name = family.NameInShards();
  if (const ColumnFamilyDescriptor* const named = Find(family.name); named != nullptr) {
    descriptor->options = named->options;
    return Status::OK();
  }
  if (family.name == ShardMap::kPreparedFamily) {
    descriptor->options = PreparedFamilyOptions();
    return Status::OK();
  }
  return GetColumnFamilyOptionsFromString({.ignore_unknown_options = true}, options_,
                                          family.options, &descriptor->options)
      .WithContext("column family " + family.name);
}

Status ShardOpener::DescriptorsOf(const ShardMap& map,
                                  std::vector<ColumnFamilyDescriptor>* families) const {
  *families = {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options_)};
  for (const ShardMap::Family& family : map.families()) {
    NACRE_RETURN_IF_ERROR(DescriptorOf(family, &families->emplace_back()));
  }
  return Status::OK();
}

Status ShardOpener::OpenDatabase(const ShardMap& map, uint32_t id,
                                 std::shared_ptr<LocalShard>* shard) const {
  const std::string database = ShardMap::DatabaseOf(name_, id);
  DBOptions existing = options_;
  existing.create_if_missing = false;
  existing.error_if_exists = false;
  // Those that members have made since.
  existing.create_missing_column_families = map.shared();
  // The coordinator has given it to this member. It is not asked again.
  existing.take_over = options_.take_over || ContextOfShards().may_move;
  std::vector<std::string> there;
  NACRE_RETURN_IF_ERROR(DB::ListColumnFamilies(existing, database, &there));
  // Those of the keyspace, in the order of the map, behind the default one; then what a process
  // left that died while it made or dropped families.
  std::vector<ColumnFamilyDescriptor> opened;
  NACRE_RETURN_IF_ERROR(DescriptorsOf(map, &opened));
  const size_t known = opened.size();
  for (const std::string& name : there) {
    if (std::none_of(opened.begin(), opened.end(),
                     [&](const auto& each) { return each.name == name; })) {
      opened.emplace_back(name, options_);
    }
  }
  std::vector<ColumnFamilyHandle*> all;
  std::unique_ptr<DB> db;
  NACRE_RETURN_IF_ERROR(DB::Open(existing, database, opened, &all, &db));
  std::vector<std::unique_ptr<ColumnFamilyHandle>> owned(all.begin(), all.end());
  const auto made =
      std::make_shared<LocalShard>(id, std::move(db), ContextOfShards(), map.family_set());
  for (size_t i = known; i < owned.size(); ++i) {
    if (!map.IsLeftover(opened[i].name)) continue;
    NACRE_RETURN_IF_ERROR(made->db()->DropColumnFamily(owned[i].get()));
  }
  for (size_t i = 1; i < known; ++i) {
    made->AddFamily(map.families()[i - 1].id, std::move(owned[i]));
  }
  *shard = made;
  return Status::OK();
}

Status ShardOpener::OpenShard(const ShardMap& map, size_t index,
                              std::shared_ptr<LocalShard>* shard) const {
  const ShardMap::Shard& record = map.shards()[index];
  const auto is_missing = [&](const Status& status) {
    return !record.sources.empty() && (status.IsIncomplete() || status.IsNotFound());
  };
  std::shared_ptr<LocalShard> opened;
  Status status = OpenDatabase(map, record.id, &opened);
  if (is_missing(status)) {
    MutexLock lock(&remake_mutex_);
    NACRE_RETURN_IF_ERROR(Remake(map, record));
    status = OpenDatabase(map, record.id, &opened);
  }
  NACRE_RETURN_IF_ERROR(status);
  NACRE_RETURN_IF_ERROR(opened->batches()->Open());
  *shard = std::move(opened);
  return Status::OK();
}

Status ShardOpener::DestroyShard(uint32_t id) const {
  return DestroyDB(ShardMap::DatabaseOf(name_, id), options_);
}

// ---- Splits and merges --------------------------------------------------------------------------

Status ShardOpener::Remake(const ShardMap& map, const ShardMap::Shard& shard) const {
  NACRE_POINT("reshaping.remade");
  std::vector<std::shared_ptr<LocalShard>> sources(shard.sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    NACRE_RETURN_IF_ERROR(OpenDatabase(map, shard.sources[i], &sources[i]));
  }
  const ShardMap::Reshaping reshaping{.sources = shard.sources, .targets = {shard.id}};
  std::vector<std::shared_ptr<LocalShard>> made;
  NACRE_RETURN_IF_ERROR(ShardReshaper(this, map, reshaping, sources).Finish(&made));
  NACRE_RETURN_IF_ERROR(made.front()->CloseForHandover());
  for (const auto& source : sources) NACRE_RETURN_IF_ERROR(source->CloseForHandover());
  return Status::OK();
}

Status ShardOpener::ClearTarget(const ShardMap& map, uint32_t id) const {
  Status status = DestroyShard(id);
  if (!status.IsBusy()) return status;
  // A process has it that began to make it, and may still believe that it is to.
  DBOptions taking = options_;
  taking.take_over = true;
  std::unique_ptr<DBImpl> taken;
  std::vector<ColumnFamilyDescriptor> families;
  NACRE_RETURN_IF_ERROR(DescriptorsOf(map, &families));
  NACRE_RETURN_IF_ERROR(
      DatabaseCopier::ReopenTarget(taking, ShardMap::DatabaseOf(name_, id), families, &taken));
  NACRE_RETURN_IF_ERROR(taken->Close());
  taken.reset();
  return DestroyShard(id);
}

std::shared_ptr<LocalShard> ShardOpener::MakeShard(const ShardMap& map, uint32_t id,
                                                   std::unique_ptr<DBImpl> engine) const {
  DBImpl* const parts_of = engine.get();
  auto shard =
      std::make_shared<LocalShard>(id, std::move(engine), ContextOfShards(), map.family_set());
  const auto families = parts_of->parts()->state.Families();
  for (const ShardMap::Family& family : map.families()) {
    for (const auto& [number, each] : families->by_id) {
      if (each->name() != family.NameInShards()) continue;
      shard->AddFamily(family.id, parts_of->parts()->state.NewHandle(each));
    }
  }
  return shard;
}

}  // namespace nacre
