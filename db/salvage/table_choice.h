#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/manifest/table_lineage.h"
#include "table/format/table_meta.h"

namespace nacre {

// Decides which of the tables that are found in a database's memory are alive. Nothing is written
// when a table dies; the lineage of later tables (table_lineage.h) decides:
//
// 1. Let T be the table of the latest owner whose lineage has the latest state, S, whether or not T
//    itself is alive. A table that S lacks is dead, unless a flush or compaction that was in
//    progress at S made it.
// 2. A table that was begun after S was written would have a later state than S. So there is none,
//    and none has replaced a table that exists: its outputs would exist, or what replaced those. A
//    compaction without outputs writes a state record instead, before the space of its inputs is
//    used again; that counts like a lineage.
// 3. For work that was in progress at S, and may have ended since:
//    - S has all inputs of a compaction. If all of them can still be read, they say the same as its
//      outputs, and stay. If not, their space was used again: the compaction has ended, and its
//      outputs replace all of them.
//    - A flush has more than S says is flushed: its tables are added. If some are missing, it may
//      not have ended; the log has what they have.
//    - A table that moved to another level without being written is where S has it. Levels are as
//      disjoint that way.
// 4. What an owner before that of T has made counts only if S has it, since T's owner went on
//    without the rest.

/// A table of which at least what is needed to read it is there.
struct SalvageCandidate {
  TableMeta meta;
  TableLineage lineage;
};

/// What ChooseTables finds.
struct TableChoice {
  /// Positions among the candidates, with the level that each has.
  std::map<size_t, uint32_t> chosen;
  SequenceNumber flushed = 0;  ///< All up to here is in these tables.
  uint64_t last_version = 0;   ///< At least the last version of any manifest that existed.
  uint64_t last_table_id = 0;  ///< At least the last id of all tables that existed.
  size_t newest = SIZE_MAX;    ///< The candidate with the latest state.
  /// The latest of the states, which is to be kept: the table that has S may not have ended, and be
  /// overwritten. SIZE_MAX: there are none.
  size_t record = SIZE_MAX;
  uint32_t num_levels = 0;  ///< 0: there is neither table nor state.
  // As the lineage that tells the latest state has them.
  std::string comparator{};
  std::map<uint32_t, FamilyRecord> families{};
  uint32_t next_family = 1;
  std::vector<uint64_t> lost;  ///< Ids of tables that there should be, and nothing stands for.
  std::vector<std::string> notes{};
};

/// `states`: of the state records that were found.
TableChoice ChooseTables(const std::vector<SalvageCandidate>& candidates,
                         const std::vector<TableLineage>& states);

}  // namespace nacre
