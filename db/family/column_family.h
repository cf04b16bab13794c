#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/family/read_view.h"
#include "db/manifest/family_record.h"
#include "db/memtable/memtable.h"
#include "db/version/compaction_picker.h"
#include "nacre/column_family.h"
#include "nacre/options.h"
#include "table/format/internal_key.h"

namespace nacre {

/// What an open database has for one of its column families: options, tables and MemTables.
///
/// MemTables by generation. The log, and how far it is in tables, is one thing for all families, so
/// a generation of MemTables ends for all of them at once, and is flushed by one change (as with
/// RocksDB's `atomic_flush`). A family that is not written in a generation has no MemTable of it.
///
/// Threads. What says so is guarded by the database's mutex. Readers load `view()` under a guard of
/// the epoch domain, or with the view held otherwise; writers ask for MemTables with their ticket.
class ColumnFamily : public std::enable_shared_from_this<ColumnFamily> {
 public:
  /// The most generations at work at once, with those that writers may just have left.
  static constexpr size_t kMemTableSlots = 64;

  /// `log` outlives this and its views.
  ColumnFamily(uint32_t id, std::string name, const ColumnFamilyOptions& options,
               uint32_t num_levels, Logger* log)
      : id_(id),
        name_(std::move(name)),
        options_(std::make_shared<const ColumnFamilyOptions>(options)),
        rules_(*options_, log),
        num_levels_(num_levels),
        comparator_(std::make_shared<const InternalKeyComparator>(options.comparator)),
        current_options_(options_.get()),
        picker_(&current_options_, comparator_.get()) {}
  ColumnFamily(const ColumnFamily&) = delete;
  ColumnFamily& operator=(const ColumnFamily&) = delete;

  uint32_t id() const { return id_; }
  const std::string& name() const { return name_; }
  /// Valid as long as this, also when others are set.
  const ColumnFamilyOptions& options() const {
    return *current_options_.load(std::memory_order_acquire);  // Pairs with SetOptions.
  }
  /// Requires the database's mutex. `options` may differ only in what may change while the database
  /// is open; views keep the former ones.
  void SetOptions(const ColumnFamilyOptions& options);
  /// The number of levels that the manifest has.
  uint32_t num_levels() const { return num_levels_; }
  const InternalKeyComparator& comparator() const { return *comparator_; }
  /// A view of the family, with nothing to see yet.
  std::shared_ptr<ReadView> NewView() const;
  const Comparator* user_comparator() const { return options_->comparator; }
  /// Guarded by the database's mutex.
  const CompactionPicker& picker() const { return picker_; }
  CompactionPicker& picker() { return picker_; }

  const ReadView* view() const {
    return view_.load(std::memory_order_acquire);  // Pairs with InstallView.
  }
  /// Guarded by the database's mutex; null before the first one is installed.
  const std::shared_ptr<const ReadView>& current_view() const { return current_view_; }
  const Version& version() const { return *current_view_->version; }
  /// Requires the database's mutex. Returns the previous view, whose destruction is too much work
  /// under that mutex.
  std::shared_ptr<const ReadView> InstallView(std::vector<std::shared_ptr<MemTable>> memtables,
                                              std::shared_ptr<const Version> version);

  /// Null if nothing has been written in this generation. Requires a ticket of it, or the
  /// database's mutex.
  MemTable* FindMemTable(uint16_t generation) const {
    return memtable_slots_[generation % kMemTableSlots].load(std::memory_order_acquire);
  }
  /// Makes it visible to writers; readers must find it already. Requires the database's mutex, and
  /// that the generation is not flushed.
  void SetMemTable(MemTable* memtable) {
    memtable_slots_[memtable->generation() % kMemTableSlots].store(memtable,
                                                                   std::memory_order_release);
  }
  /// Whether iterators read the MemTable of the last generation. Guarded by the database's mutex.
  void NoteIterated(bool iterated) { iterated_ = iterated; }
  bool iterated() const { return iterated_; }
  /// The generation is in tables.
  void ForgetMemTable(uint16_t generation) {
    memtable_slots_[generation % kMemTableSlots].store(nullptr, std::memory_order_release);
  }
  /// The MemTables with `memtable` in its generation's place: newest first.
  std::vector<std::shared_ptr<MemTable>> MemTablesWith(std::shared_ptr<MemTable> memtable) const;
  std::vector<std::shared_ptr<MemTable>> MemTablesWithout(uint16_t generation) const;
  /// Shared, from the view.
  std::shared_ptr<MemTable> HoldMemTable(uint16_t generation) const;

  /// It is not in the manifest any more. Set under the database's mutex while changes are
  /// committed.
  void MarkDropped() { dropped_.store(true, std::memory_order_release); }
  bool dropped() const { return dropped_.load(std::memory_order_acquire); }

 private:
  const uint32_t id_;
  const std::string name_;
  const std::shared_ptr<const ColumnFamilyOptions> options_;  ///< Views have them, too.
  const ReadRules rules_;
  const uint32_t num_levels_;
  const std::shared_ptr<const InternalKeyComparator> comparator_;  ///< Views have it, too.
  std::atomic<const ColumnFamilyOptions*> current_options_;
  /// All that were ever set, as they may still have readers.
  std::vector<std::unique_ptr<const ColumnFamilyOptions>> set_options_;
  CompactionPicker picker_;
  std::atomic<const ReadView*> view_{nullptr};
  std::shared_ptr<const ReadView> current_view_;
  /// A slot is empty before its generation begins and once it is flushed. A writer's MemTable
  /// cannot go before the writer publishes.
  std::array<std::atomic<MemTable*>, kMemTableSlots> memtable_slots_{};
  std::atomic<bool> dropped_{false};
  bool iterated_ = false;
};

/// The families of a database at one moment. Immutable.
struct ColumnFamilySet : std::enable_shared_from_this<ColumnFamilySet> {
  std::map<uint32_t, std::shared_ptr<ColumnFamily>> by_id;

  /// Null if there is none.
  ColumnFamily* Find(uint32_t id) const {
    const auto it = by_id.find(id);
    return it != by_id.end() ? it->second.get() : nullptr;
  }
  ColumnFamily* Find(const std::string& name) const;
};

/// What the manifest has of them; without the default one.
std::map<uint32_t, FamilyRecord> RecordsOf(const ColumnFamilySet& families);

/// Keeps its family, also when that is dropped.
class ColumnFamilyHandleImpl final : public ColumnFamilyHandle {
 public:
  /// `owner` tells the handles of one database from another's.
  ColumnFamilyHandleImpl(std::shared_ptr<ColumnFamily> family, const void* owner)
      : family_(std::move(family)), owner_(owner) {}

  const std::string& GetName() const override { return family_->name(); }
  uint32_t GetID() const override { return family_->id(); }
  Status GetDescriptor(ColumnFamilyDescriptor* descriptor) override;

  const std::shared_ptr<ColumnFamily>& family() const { return family_; }
  const void* owner() const { return owner_; }

 private:
  const std::shared_ptr<ColumnFamily> family_;
  const void* const owner_;
};

}  // namespace nacre
