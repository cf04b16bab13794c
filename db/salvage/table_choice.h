#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/manifest/table_lineage.h"
#include "table/format/table_meta.h"

namespace nacre {

// Which of the tables that are found in a database's memory are alive. Nothing is written when a
// table dies; it is what later tables tell of (table_lineage.h) that decides:
//
// 1. Let T be the table of the latest owner whose lineage tells of the latest state, S, whether or
//    not T itself is alive. Whatever S has not got, and no flush or compaction that was under way
//    at S has made, is dead.
// 2. A table that began after S was written would tell of a later state than S. So none of those is
//    there any more, and none has replaced anything that is there: what it made would be there, or
//    what that was replaced by. A compaction that leaves nothing writes a state record instead,
//    before the space of its inputs is used again; that counts like a lineage.
// 3. What was under way at S, and may have ended since:
//    - a compaction, whose inputs S has all got. If all of them can still be read, they say the
//      same as its outputs, and stay. If not, their space was used again: the compaction has ended,
//      and its outputs stand for all of them.
//    - a flush, which has more than S says is flushed: its tables are added. If they are not all
//      there, it may not have ended; the log has what they have.
//    - a table that moved to another level without being written is where S has it. Levels are as
//      disjoint that way.
// 4. What an owner before that of T has made counts only if S has it: nobody waited for it.

/// A table of which at least what is needed to read it is there.
struct Candidate {
  TableMeta meta;
  TableLineage lineage;
};

/// What ChooseTables finds.
struct TableChoice {
  /// Positions among the candidates, with the level that each has.
  std::map<size_t, uint32_t> chosen;
  SequenceNumber flushed = 0;  ///< All up to here is in these tables.
  uint64_t last_version = 0;   ///< At least that of any manifest that was.
  uint64_t last_table_id = 0;  ///< Of all that there were.
  size_t newest = SIZE_MAX;    ///< Of the candidates, the one with the latest state.
  /// Of the states, the latest, which is to be kept: the table that tells S may not have ended, and
  /// be overwritten. SIZE_MAX: there are none.
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
TableChoice ChooseTables(const std::vector<Candidate>& candidates,
                         const std::vector<TableLineage>& states);

}  // namespace nacre
