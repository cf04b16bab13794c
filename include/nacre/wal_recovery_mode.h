#pragma once

namespace nacre {

/// What opening a database does about records of its log that no copy has whole. Names, values and
/// meaning are those of RocksDB. A record that is damaged in some copies only is taken from
/// another, whatever the mode.
enum class WALRecoveryMode : char {
  /// What was being written when the owner died may be damaged: replay ends before it. Damage
  /// before other records is `Corruption`.
  kTolerateCorruptedTailRecords = 0,
  /// Any damage is `Corruption`.
  kAbsoluteConsistency = 1,
  /// Replay ends before the first damaged record.
  kPointInTimeRecovery = 2,
  /// Damaged records are left out, whatever then is missing.
  kSkipAnyCorruptedRecords = 3,
};

}  // namespace nacre
