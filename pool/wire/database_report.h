#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pool/wire/messages.h"
#include "pool/wire/versions.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// How far a database is with putting back the redundancy of its tables, and with moving fragments
/// off nodes that are to leave.
struct RepairProgress {
  enum class State : uint8_t {
    kIdle = 0,  ///< Nothing to do.
    kRunning = 1,
    kPaused = 2,   ///< The directions ask for it; see Directions.
    kWaiting = 3,  ///< There is something to do that cannot be done: too few nodes, no space.
  };
  State state = State::kIdle;
  uint64_t bytes_done = 0;  ///< Bytes of fragments, since there was nothing to do.
  uint64_t bytes_total = 0;
  uint64_t bytes_per_second = 0;  ///< Lately.
  uint64_t seconds_left = 0;      ///< 0: not known.
};
/// "idle", "running", "paused", "waiting".
const char* ToString(RepairProgress::State state);

/// What an owner has on a node that is in maintenance (Directions::maintenance).
struct LeavingNode {
  enum class State : uint8_t {
    kLeaving = 0,  ///< Copies of its log or manifest, which are on their way to other nodes.
    kLeft = 1,     ///< None of them, nor will it put any there.
    kKept = 2,     ///< Such copies, which stay: too few other nodes are there to take them.
  };
  uint64_t instance_id = 0;
  State state = State::kLeaving;
};

/// An operation that took long.
struct SlowOperation {
  uint64_t age_nanos = 0;  ///< Since it has ended, when the report was made.
  std::string text{};      ///< What it waited for, as the owner's LOG has it.
};

/// How long operations of one kind took since the database was opened.
struct ReportedTimes {
  std::string operation{};  ///< "get", "write", "multiget", "seek".
  uint64_t count = 0;
  double median_micros = 0;
  double p99_micros = 0;
};

/// What the owner of a database reports to its nodes, for observers of the pool.
struct DatabaseReport {
  uint64_t database_id = 0;
  std::string redundancy{};
  std::vector<std::pair<std::string, uint64_t>> space{};  ///< Bytes by name ("user-bytes").
  RepairProgress repair{};
  std::string notice{};  ///< What an operator has to know; empty: nothing.
  /// Nodes in maintenance that the owner has heard of.
  std::vector<LeavingNode> leaving{};
  FeatureSet features_on = 0;    ///< What the owner has heard to be on in the pool.
  uint64_t slow_operations = 0;  ///< How many there were (DBOptions::slow_operation_threshold).
  std::vector<SlowOperation> latest_slow{};  ///< The latest of them, the oldest first.
  std::vector<ReportedTimes> times{};       ///< Empty unless Options::statistics count.
};

/// A node that an operator is about to stop for a while. Its data stays there, and is not repaired
/// elsewhere while it is away. Ends with the time that is left, and when the node is started anew.
struct Maintenance {
  uint64_t instance_id = 0;
  uint32_t start_id = 0;    ///< Start of the node (PoolClient::start_id) that is to end.
  std::string address{};    ///< As the operator's program reaches it.
  uint64_t left_nanos = 0;  ///< When it was told; 0: it is over.
  /// Whether they are one order; the time that is left is another at each moment.
  bool operator==(const Maintenance& other) const {
    return instance_id == other.instance_id && start_id == other.start_id &&
           address == other.address;
  }
};

/// The operators' directions for the databases in a pool. Each node keeps a replica; the highest
/// version holds, so a node that was away or is new does no harm.
struct Directions {
  uint64_t version = 0;  ///< 0: there are no directions yet.
  /// Instance ids of the nodes that are to be left by all fragments.
  std::vector<uint64_t> draining{};
  bool repair_paused = false;
  uint64_t repair_bytes_per_second = 0;        ///< Replaces the databases' own limit; 0: does not.
  std::vector<std::string> added_addresses{};  ///< Nodes beyond those of the databases' URIs.
  std::vector<Maintenance> maintenance{};      ///< Nodes that may be away for a while.
  /// Features that are on in the pool. They are never turned off: a node adds those that it has
  /// heard of before.
  FeatureSet features_on = 0;
  bool operator==(const Directions&) const = default;
};

/// A reader of a database's log that wants it to be kept from `sequence` on, such as an archive.
struct LogReader {
  uint64_t reader = 0;  ///< Chosen by it.
  uint64_t sequence = 0;
  uint64_t restorable = 0;  ///< All up to here can be had from it; 0: nothing.
  uint64_t age_nanos = 0;   ///< Since it was last heard of.
};

/// A node forgets a reader that has not been heard of for so long.
inline constexpr uint64_t kLogReaderForgottenNanos = 600'000'000'000;

/// What a node knows of a database.
struct KnownDatabase {
  std::string name;
  uint64_t database_id = 0;
  bool open = false;
  uint64_t leased_bytes = 0;  ///< Bytes leased on this node.
  bool reported = false;      ///< Otherwise there is no report, or its owner is gone.
  uint64_t report_age_nanos = 0;
  DatabaseReport report;
  std::vector<LogReader> log_readers;
};

/// A client that is connected to a node.
struct ConnectedClient {
  uint64_t client_id = 0;
  ProtocolSupport protocol;
  std::vector<std::string> owned;  ///< Names of the databases that it owns.
};

void EncodeReport(const DatabaseReport& report, control::ReportDatabase* message);
void DecodeReport(const control::ReportDatabase& message, DatabaseReport* report);
void EncodeDirections(const Directions& directions, control::Directions* message);
void DecodeDirections(const control::Directions& message, Directions* directions);
LogReader DecodeLogReader(const control::LogReader& message);
void DecodeKnownDatabase(const control::KnownDatabase& message, KnownDatabase* database);
void EncodeConnectedClient(const ConnectedClient& client, control::ConnectedClient* message);
ConnectedClient DecodeConnectedClient(const control::ConnectedClient& message);

}  // namespace nacre::pool
