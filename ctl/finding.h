#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "nacre/status.h"

// What `nacre-ctl fsck` finds.

namespace nacre::ctl {

/// What is wrong.
enum class Problem : uint8_t {
  kNode,      ///< A node does not answer.
  kRoot,      ///< A node has another root than the others, or none.
  kManifest,  ///< A copy of the manifest is damaged, or differs from the others.
  kDegraded,  ///< Something has lost some of its redundancy.
  kLost,      ///< Something cannot be read any more.
  kDamage,    ///< Bytes are not what they were.
  kDangling,  ///< Something lies where the database has no memory.
  kOverlap,   ///< Two things lie in the same memory.
  kLeak,      ///< Memory that nothing refers to.
};
/// "node", "root", ...
const char* ToString(Problem problem);

struct Finding {
  Problem problem = Problem::kNode;
  std::string database{};  ///< Empty: it is about the pool.
  std::string node{};      ///< Its address; empty: it is about no single node.
  uint64_t table = 0;      ///< 0: it is about no table.
  uint64_t segment = 0;    ///< The log's segment; 0 if it is about none.
  std::string text{};
  /// How many more nodes may be lost because of it; -1: something is lost.
  int spare_nodes = std::numeric_limits<int>::max();
};
/// One line: "damage: database orders: shm:/run/n0.sock: table 12: chunk 3 of fragment 1 ...".
std::string ToString(const Finding& finding);

/// How a database is, apart from findings.
struct DatabaseHealth {
  std::string name;
  uint64_t id = 0;
  /// Leaks are not counted then: what its owner has reserved is in no manifest.
  bool open = false;
  uint64_t tables = 0;
  uint64_t table_bytes = 0;  ///< Stored: of all fragments.
  uint64_t segments = 0;
  uint64_t manifest_copies = 0;
  uint64_t manifest_version = 0;
  /// How many more nodes may be lost without loss of data, whichever they are; -1: some is lost.
  int spare_nodes = 0;
  uint64_t bytes_checked = 0;  ///< Bytes of chunks that were compared with their checksums.
  /// Bytes of its slabs that are not in use; next tables go there.
  uint64_t unreferenced_bytes = 0;
  std::vector<std::string> remarks{};  ///< Nothing to worry about.
};

struct FsckReport {
  std::vector<DatabaseHealth> databases;
  std::vector<Finding> findings;
  std::vector<Status> failures;  ///< Why something could not be looked at.

  /// 0: all is well; 1: something was found; 2: something could not be looked at.
  int exit_status() const { return !failures.empty() ? 2 : !findings.empty() ? 1 : 0; }
};

/// Prints to standard output.
void PrintFsck(const FsckReport& report, bool json);

}  // namespace nacre::ctl
