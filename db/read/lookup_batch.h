#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "db/cache/record_cache.h"
#include "db/family/read_view.h"
#include "db/read/point_lookup.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/store/table_store.h"
#include "table/format/internal_key.h"

namespace nacre {

/// What all lookups of a database need.
struct LookupSource {
  pool::PoolClient* client = nullptr;
  const pool::TableStore* store = nullptr;
  /// Reads what a lookup lacks of a table. May be called from many threads at once.
  std::function<Status(const TableHandle&)> prepare;
  /// A follower meets memory that others use by now, which is no damage.
  bool finds_damage = true;
  RecordCache* record_cache = nullptr;  ///< Null: there is none.
};

/// What the lookups of a batch have in common. All of it outlives them, and the view is pinned.
struct LookupContext {
  const LookupSource& source;
  const ReadView& view;
  const ReadOptions& options;
  SequenceNumber snapshot;
};

/// The contexts of some keys: one of all, or one of each, whose databases have the same client.
class KeyContexts {
 public:
  KeyContexts(const LookupContext& all) : all_(&all) {}  // NOLINT: a context stands for that.
  explicit KeyContexts(const LookupContext* const* each) : each_(each) {}

  const LookupContext& operator[](size_t key) const {
    return each_ == nullptr ? *all_ : *each_[key];
  }
  /// Those of the keys from this one on.
  KeyContexts From(size_t key) const {
    return each_ == nullptr ? KeyContexts(*all_) : KeyContexts(each_ + key);
  }
  bool one_for_all() const { return each_ == nullptr; }

 private:
  const LookupContext* all_ = nullptr;
  const LookupContext* const* each_ = nullptr;
};

/// The lookup of one key in a view: in its MemTables, then in its tables. Each step names what the
/// next one needs, and none waits but Await, so that a thread may have many under way.
///
/// Thread safety: none.
class KeyLookup {
 public:
  enum class State : uint8_t {
    kReads,   ///< Next names what is to be read.
    kLoads,   ///< Load takes what lies in mapped memory, and had better do so a little later.
    kEnded,   ///< The status says how.
    kFailed,  ///< It has ended, since tables could not be read: the status says why.
    kWaits,   ///< What follows needs Await.
  };

  /// Asks the processor for what LookInMemory looks at. `key`, `value`, which is empty, and
  /// `status` stay valid until the lookup has ended.
  void Begin(const LookupContext& context, const Slice& key, PinnableSlice* value, Status* status);
  /// Before or after LookInMemory: asks the processor for what Next looks at.
  void BeginTables(const LookupContext& context);
  State LookInMemory(const LookupContext& context);
  /// Takes what it finds in the cache of records at once.
  State Next(const LookupContext& context, pool::PointRead* read);
  /// Takes the bytes of that read, which may go once this returns.
  State Consume(const LookupContext& context, const pool::PointRead& read);
  /// Takes what can be loaded: after kLoads. kReads: Next goes on.
  State Load(const LookupContext& context);
  /// Waits for I/O: loads what is missing of a table and begins the tables again, or searches with
  /// an iterator.
  State Await(const LookupContext& context);

  /// For a read without an address: see PointLookup.
  PointLookup* tables() { return &tables_; }
  const Slice& key() const { return key_; }

 private:
  /// Whether the cache has the record of `*read`, which then has its bytes, in `*buffer`.
  bool FindCached(const LookupContext& context, std::unique_ptr<char[]>* buffer,
                  pool::PointRead* read);
  /// What the tables have answered to what was read, loaded or found in the cache.
  State Answer(const LookupContext& context, PointLookup::Outcome outcome, const Record& record);
  /// By the outcome of the tables, which is not kFound.
  State Conclude();

  PointLookup tables_;
  Slice key_;
  uint64_t hash_ = 0;
  PinnableSlice* value_ = nullptr;
  Status* status_ = nullptr;
};

/// Looks up all of `keys`, with as many reads in flight together as pay. `values` are empty; each
/// key gets its status.
void LookUpKeys(const KeyContexts& contexts, std::span<const Slice> keys, PinnableSlice* values,
                Status* statuses);

}  // namespace nacre
