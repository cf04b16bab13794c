#include "db_bench/flags/member_flags.h"

#include <fmt/format.h>
#include <gflags/gflags.h>

#include <string>

#include "db_bench/benchmark_list.h"
#include "db_bench/engine/member_process.h"

DEFINE_string(coordinator, "",
              "nacre: what lets several processes own the shards of --sharded together, such as "
              "etcd:127.0.0.1:2379; needs --pool. Empty: this process owns them all");
DEFINE_int64(members, 1,
             "Processes that own shards, this one included, or beside this one with "
             "--member_address=none. db_bench starts the others itself");
DEFINE_string(member_address, "",
              "Where this process serves its shards to the others; with --coordinator the default "
              "is shm:@. none: it owns no shards, so that it sends all operations to the others");
DEFINE_string(other_member_address, "",
              "Where each of the others serves its own, such as tcp:127.0.0.1:0; empty: as "
              "--member_address says, or shm:@ if that is none");
DEFINE_bool(
    read_from_follower, false,
    "Reads of keys that other members own go to the memory nodes, and may be a little behind");
DEFINE_int64(moves, 20, "How often the benchmark moves has a shard go to the next member");

namespace nacre::bench {
namespace {

constexpr int64_t kMaxMembers = 64;
constexpr int64_t kMaxMoves = 1'000'000;
constexpr const char* kDefaultAddress = "shm:@";
constexpr const char* kNoAddress = "none";

Status CheckWithoutCoordinator(const BenchConfig& config) {
  for (const char* flag :
       {"members", "member_address", "other_member_address", "read_from_follower"}) {
    if (gflags::GetCommandLineFlagInfoOrDie(flag).is_default) continue;
    return Status::InvalidArgument(fmt::format("--{} needs --coordinator", flag));
  }
  for (const std::string& name : config.benchmarks) {
    if (!FindBenchmark(name)->of_members) continue;
    return Status::InvalidArgument(name + " needs --coordinator and --members");
  }
  return Status::OK();
}

/// So that a mistake does not show as a process that ends.
Status CheckAddress(const char* flag, const std::string& address) {
  if (address.find(':') != std::string::npos) return Status::OK();
  return Status::InvalidArgument(
      fmt::format("--{}={}: is no TRANSPORT:ADDRESS, such as tcp:127.0.0.1:0", flag, address));
}

Status CheckSeveral(const BenchConfig& config) {
  const bool owns = !config.member_address.empty();
  if (config.child_members + (owns ? 1 : 0) >= 2) return Status::OK();
  for (const std::string& name : config.benchmarks) {
    if (!FindBenchmark(name)->of_members) continue;
    return Status::InvalidArgument(name + " needs two members: --members=2");
  }
  return Status::OK();
}

}  // namespace

Status ParseMemberFlags(BenchConfig* config) {
  if (FLAGS_members < 1 || FLAGS_members > kMaxMembers) {
    return Status::InvalidArgument(
        fmt::format("--members={}: must be in [1, {}]", FLAGS_members, kMaxMembers));
  }
  if (FLAGS_moves < 1 || FLAGS_moves > kMaxMoves) {
    return Status::InvalidArgument(
        fmt::format("--moves={}: must be in [1, {}]", FLAGS_moves, kMaxMoves));
  }
  if (FLAGS_coordinator.empty()) return CheckWithoutCoordinator(*config);
  if (config->sharded == 0) return Status::InvalidArgument("--coordinator needs --sharded");
  if (config->pool.starts_with("embedded:")) {
    return Status::InvalidArgument(
        "--coordinator needs --pool: an embedded pool is one process's own");
  }
  const bool owns = FLAGS_member_address != kNoAddress;
  config->coordinator = FLAGS_coordinator;
  config->read_from_follower = FLAGS_read_from_follower;
  config->moves = static_cast<uint64_t>(FLAGS_moves);
  config->serve_member = IsMemberProcess();
  config->child_members = static_cast<int>(FLAGS_members) - (owns ? 1 : 0);
  const std::string address =
      owns && !FLAGS_member_address.empty() ? FLAGS_member_address : kDefaultAddress;
  config->child_address = FLAGS_other_member_address.empty() ? address : FLAGS_other_member_address;
  if (owns) config->member_address = address;
  NACRE_RETURN_IF_ERROR(CheckAddress("member_address", address));
  NACRE_RETURN_IF_ERROR(CheckAddress("other_member_address", config->child_address));
  return CheckSeveral(*config);
}

}  // namespace nacre::bench
