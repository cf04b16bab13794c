#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nacre/slice.h"

namespace nacre {

/// Asked, while tables are compacted, what is to become of a value: to let values expire, or to
/// change them. The interface is RocksDB's.
///
/// Asked for the newest version of a key that the compaction has, if it is a value that no snapshot
/// sees: what snapshots see stays as it is. Operands of merges are not asked for, what they were
/// merged to is by later compactions. Flushes do not ask. Which compaction meets a key, and
/// when, is not defined; `DB::CompactRange` asks for all keys of the range.
///
/// Thread safety: one that the options name is called from many threads at once; one that a factory
/// makes, from one.
class CompactionFilter {
 public:
  virtual ~CompactionFilter() = default;

  enum class ValueType : uint8_t { kValue };
  enum class Decision : uint8_t {
    kKeep,
    kRemove,       ///< As if it had been deleted then.
    kChangeValue,  ///< The value becomes `*new_value`.
  };

  struct Context {
    bool is_full_compaction = false;    ///< All tables of the database are compacted.
    bool is_manual_compaction = false;  ///< `DB::CompactRange` asked for it.
    uint32_t column_family_id = 0;
  };

  /// `level`: where the outcome goes.
  virtual Decision FilterV2(int level, const Slice& key, ValueType value_type,
                            const Slice& existing_value, std::string* new_value,
                            std::string* skip_until) const;
  /// The simple form, which FilterV2 calls unless it is overridden: true removes the value;
  /// `*value_changed` changes it.
  virtual bool Filter(int level, const Slice& key, const Slice& existing_value,
                      std::string* new_value, bool* value_changed) const;

  /// Memory nodes look the filter up by this; one that they do not know has compactions run on the
  /// compute node.
  virtual const char* Name() const = 0;
};

/// Makes a filter for each compaction, and for each key range that one is run in. Thread-safe.
class CompactionFilterFactory {
 public:
  virtual ~CompactionFilterFactory() = default;
  /// Null: nothing is filtered.
  virtual std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& context) = 0;
  /// As that of a filter.
  virtual const char* Name() const = 0;
};

}  // namespace nacre
