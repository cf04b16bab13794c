#include "db/family/family_properties.h"

#include <fmt/format.h>

#include <functional>

#include "util/uri.h"

namespace nacre {

FamilyProperties::FamilyProperties(const ColumnFamily& family, uint16_t generation)
    : family_(family),
      view_(family.current_view()),
      generation_(generation),
      compaction_due_(family.picker().Due(*view_->version)) {}

const MemTable* FamilyProperties::Active() const {
  if (view_->memtables.empty()) return nullptr;
  const MemTable* const newest = view_->memtables.front().get();
  return newest->generation() == generation_ ? newest : nullptr;
}

template <typename Function>
uint64_t FamilyProperties::SumOverActive(Function function) const {
  const MemTable* const active = Active();
  return active != nullptr ? std::invoke(function, *active) : 0;
}

template <typename Function>
uint64_t FamilyProperties::SumOverFull(Function function) const {
  uint64_t sum = 0;
  for (const auto& memtable : view_->memtables) {
    if (memtable.get() != Active()) sum += std::invoke(function, *memtable);
  }
  return sum;
}

template <typename Function>
uint64_t FamilyProperties::SumOverTables(Function function) const {
  uint64_t sum = 0;
  ForEachTable({view_->version},
               [&](const auto& table, int /*level*/) { sum += function(*table); });
  return sum;
}

uint64_t FamilyProperties::MemTableBytes() const {
  uint64_t bytes = 0;
  for (const auto& memtable : view_->memtables) bytes += memtable->MemoryUsage();
  return bytes;
}

uint64_t FamilyProperties::FullMemTables() const {
  return SumOverFull([](const MemTable& memtable) { return memtable.entries() > 0 ? 1 : 0; });
}

uint64_t FamilyProperties::TableBytes() const {
  uint64_t bytes = 0;
  for (int level = 0; level < version().depth(); ++level) bytes += version().LevelBytes(level);
  return bytes;
}

uint64_t FamilyProperties::Tombstones() const {
  return SumOverTables([](const TableHandle& table) { return table.meta().tombstones; });
}

uint64_t FamilyProperties::EstimatedKeys() const {
  uint64_t entries = 0;
  uint64_t deletions = 0;
  for (const auto& memtable : view_->memtables) {
    entries += memtable->entries();
    deletions += memtable->deletions();
  }
  entries += SumOverTables([](const TableHandle& table) { return table.meta().entries; });
  deletions += Tombstones();
  // As RocksDB counts: a tombstone is an entry itself and hides another one.
  return entries > 2 * deletions ? entries - 2 * deletions : 0;
}

struct FamilyProperties::Entry {
  std::string_view name;
  uint64_t (*number)(const FamilyProperties&);
};

bool FamilyProperties::Number(std::string_view name, uint64_t* value) const {
  using F = const FamilyProperties&;
  static constexpr Entry kNumbers[] = {
      {"num-entries-active-mem-table", [](F f) { return f.SumOverActive(&MemTable::entries); }},
      {"num-entries-imm-mem-tables", [](F f) { return f.SumOverFull(&MemTable::entries); }},
      {"num-deletes-active-mem-table", [](F f) { return f.SumOverActive(&MemTable::deletions); }},
      {"num-deletes-imm-mem-tables", [](F f) { return f.SumOverFull(&MemTable::deletions); }},
      {"cur-size-active-mem-table", [](F f) { return f.SumOverActive(&MemTable::MemoryUsage); }},
      {"cur-size-all-mem-tables", [](F f) { return f.MemTableBytes(); }},
      {"size-all-mem-tables", [](F f) { return f.MemTableBytes(); }},
      {"num-immutable-mem-table", [](F f) { return f.FullMemTables(); }},
      {"mem-table-flush-pending", [](F f) { return uint64_t{f.FullMemTables() > 0}; }},
      {"compaction-pending", [](F f) { return uint64_t{f.compaction_due_}; }},
      {"estimate-num-keys", [](F f) { return f.EstimatedKeys(); }},
      {"estimate-pending-compaction-bytes",
       [](F f) { return f.family_.picker().PendingBytes(f.version()); }},
      {"estimate-table-readers-mem",
       [](F f) { return f.SumOverTables([](const auto& table) { return table.MemoryUsage(); }); }},
      // The deepest level has each key once, and nearly all that there are.
      {"estimate-live-data-size",
       [](F f) {
         const int depth = f.version().depth();
         return depth == 0 ? 0 : f.version().LevelBytes(depth - 1);
       }},
      {"total-sst-files-size", [](F f) { return f.TableBytes(); }},
      {"live-sst-files-size", [](F f) { return f.TableBytes(); }},
      {"num-live-tables", [](F f) { return uint64_t{f.version().CountTables()}; }},
      {"num-tombstones", [](F f) { return f.Tombstones(); }},
  };
  constexpr std::string_view kFilesAtLevel = "num-files-at-level";
  if (name.starts_with(kFilesAtLevel)) {
    uint64_t level = 0;
    const Slice digits(name.data() + kFilesAtLevel.size(), name.size() - kFilesAtLevel.size());
    const auto deepest = static_cast<uint64_t>(version().num_levels() - 1);
    if (!ParseNumber(digits, 0, deepest, &level).ok()) return false;
    *value = version().CountTables(static_cast<int>(level));
    return true;
  }
  for (const Entry& entry : kNumbers) {
    if (entry.name != name) continue;
    *value = entry.number(*this);
    return true;
  }
  return false;
}

bool FamilyProperties::Map(std::string_view name, std::map<std::string, std::string>* value) const {
  const auto add = [&](const std::string& key, uint64_t number) {
    (*value)[key] = std::to_string(number);
  };
  const auto sum = [&](const std::string& key, auto field) {
    add(key, SumOverTables([&](const TableHandle& table) { return field(table.meta()); }));
  };
  if (name == "cfstats") {
    for (int level = 0; level < version().num_levels(); ++level) {
      const std::string prefix = fmt::format("L{}", level);
      add(prefix + ".num-files", version().CountTables(level));
      add(prefix + ".bytes", version().LevelBytes(level));
    }
    add("mem-table-bytes", MemTableBytes());
    add("estimate-num-keys", EstimatedKeys());
    add("estimate-pending-compaction-bytes", family_.picker().PendingBytes(version()));
    return true;
  }
  if (name == "aggregated-table-properties") {
    add("num-files", version().CountTables());
    sum("num-entries", [](const TableMeta& meta) { return meta.entries; });
    add("num-deletions", Tombstones());
    sum("raw-bytes", [](const TableMeta& meta) { return meta.user_bytes; });
    sum("data-size", [](const TableMeta& meta) { return meta.records.length; });
    sum("index-size",
        [](const TableMeta& meta) { return meta.point_index.length + meta.range_index.length; });
    sum("filter-size", [](const TableMeta& meta) { return meta.bloom.length; });
    return true;
  }
  return false;
}

std::string FamilyProperties::LevelStats() const {
  std::string text = "Level Files Size(MB)\n--------------------\n";
  for (int level = 0; level < version().num_levels(); ++level) {
    text += fmt::format("{:3d} {:8d} {:8.0f}\n", level, version().CountTables(level),
                        static_cast<double>(version().LevelBytes(level)) / (1 << 20));
  }
  return text;
}

std::string FamilyProperties::Tables() const {
  std::string text;
  for (int level = 0; level < version().num_levels(); ++level) {
    for (const auto& table : version().tables(level)) {
      const TableMeta& meta = table->meta();
      text += fmt::format("level {} table {} entries {} tombstones {} bytes {} [{} .. {}] on",
                          level, meta.id, meta.entries, meta.tombstones, meta.size,
                          meta.smallest_user_key().ToString(true),
                          meta.largest_user_key().ToString(true));
      for (const ExtentAddr& fragment : meta.placement.fragments) {
        text += fmt::format(" node {} at {}", static_cast<unsigned>(fragment.start.node),
                            static_cast<uint64_t>(fragment.start.offset));
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace nacre
