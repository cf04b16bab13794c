#include "ctl/keyspace/keyspace_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "ctl/ctl_report.h"
#include "ctl/keyspace/keyspace_report.h"
#include "sharding/balance/balance_options.h"
#include "sharding/members/keyspace_admin.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

constexpr std::chrono::milliseconds kMemberDrainPeriod{200};

/// The member that `name` means.
Status FindMember(KeyspaceAdmin* admin, const std::string& name, int64_t* id,
                  KeyspaceState* state) {
  NACRE_RETURN_IF_ERROR(admin->Read(state));
  for (const MemberInfo& member : state->members) {
    const std::string& address = member.address;
    if (std::to_string(member.id) != name && address != name &&
        (address.empty() || address.substr(address.find(':') + 1) != name)) {
      continue;
    }
    *id = member.id;
    return Status::OK();
  }
  return Status::InvalidArgument(fmt::format("the keyspace has no member '{}'", name));
}

Status ParseShard(const std::string& name, uint32_t* shard) {
  uint64_t number = 0;
  NACRE_RETURN_IF_ERROR(
      ParseNumber(name, 0, std::numeric_limits<uint32_t>::max(), &number).WithContext("SHARD"));
  *shard = static_cast<uint32_t>(number);
  return Status::OK();
}

Status Move(KeyspaceAdmin* admin, const std::string& shard_name, const std::string& member_name) {
  uint32_t shard = 0;
  NACRE_RETURN_IF_ERROR(ParseShard(shard_name, &shard));
  int64_t member = 0;
  KeyspaceState state;
  NACRE_RETURN_IF_ERROR(FindMember(admin, member_name, &member, &state));
  NACRE_RETURN_IF_ERROR(admin->Move(shard, member));
  fmt::print("shard {} is served by {}\n", shard, NameOf(state, member));
  return Status::OK();
}

/// Members that shards may go to.
bool OthersMayServe(const KeyspaceReport& report, int64_t member) {
  return std::ranges::any_of(report.state.members, [&](const MemberInfo& other) {
    return other.id != member && other.serves() && !report.map.IsDraining(other.id);
  });
}

/// Waits until the member has no shards, and shows how many there are to go.
Status AwaitDrained(KeyspaceAdmin* admin, int64_t member, Clock* clock) {
  std::string shown;
  for (;;) {
    KeyspaceReport report;
    NACRE_RETURN_IF_ERROR(AskKeyspace(admin, &report));
    NACRE_RETURN_IF_ERROR(report.map_status);
    const std::string name = NameOf(report.state, member);
    const auto answer = report.answers.find(member);
    if (answer == report.answers.end()) {
      fmt::print("{}: is no member any more\n", name);
      return Status::OK();
    }
    if (!report.map.IsDraining(member)) return Status::Aborted(name + " is not to be drained");
    const uint64_t left =
        std::max<uint64_t>(report.map.CountOf(member), answer->second.loads.size());
    if (left == 0 && answer->second.status.ok()) {
      fmt::print("{}: serves no shards any more\n", name);
      return Status::OK();
    }
    std::string line = fmt::format("{}: {} to go", name, Counted(left, "shard"));
    if (!OthersMayServe(report, member)) line += "; there is no other member that may have them";
    if (!answer->second.status.ok()) line += "; " + answer->second.status.ToString();
    if (line != shown) fmt::print("{}\n", line);
    std::fflush(stdout);
    shown = std::move(line);
    clock->SleepFor(kMemberDrainPeriod);
  }
}

Status DrainMember(KeyspaceAdmin* admin, const std::string& member_name, bool drain, bool wait,
                   Clock* clock) {
  int64_t member = 0;
  KeyspaceState state;
  NACRE_RETURN_IF_ERROR(FindMember(admin, member_name, &member, &state));
  if (!state.Find(member)->serves()) {
    return Status::InvalidArgument(NameOf(state, member) + " only uses the keyspace");
  }
  NACRE_RETURN_IF_ERROR(admin->Drain(member, drain));
  return drain && wait ? AwaitDrained(admin, member, clock) : Status::OK();
}

/// A key as it is, or in hexadecimal digits behind "0x", as `shards --json` shows keys.
Status ParseKey(const std::string& text, std::string* key) {
  *key = text;
  if (!text.starts_with("0x")) return Status::OK();
  key->clear();
  for (size_t i = 2; i < text.size(); i += 2) {
    uint8_t byte = 0;
    const char* const begin = text.data() + i;
    const char* const end = begin + std::min<size_t>(2, text.size() - i);
    const auto [last, error] = std::from_chars(begin, end, byte, 16);
    if (error != std::errc() || last != begin + 2) {
      return Status::InvalidArgument("'" + text + "' is no key in hexadecimal digits");
    }
    key->push_back(static_cast<char>(byte));
  }
  return Status::OK();
}

Status Split(KeyspaceAdmin* admin, const std::string& shard_name, const std::string& key_text) {
  uint32_t shard = 0;
  std::string key;
  NACRE_RETURN_IF_ERROR(ParseShard(shard_name, &shard));
  NACRE_RETURN_IF_ERROR(ParseKey(key_text, &key));
  NACRE_RETURN_IF_ERROR(admin->Split(shard, key));
  fmt::print("shard {} is split\n", shard);
  return Status::OK();
}

Status MergeShards(KeyspaceAdmin* admin, const std::string& low_name,
                   const std::string& high_name) {
  uint32_t low = 0;
  uint32_t high = 0;
  NACRE_RETURN_IF_ERROR(ParseShard(low_name, &low));
  NACRE_RETURN_IF_ERROR(ParseShard(high_name, &high));
  NACRE_RETURN_IF_ERROR(admin->MergeShards(low, high));
  fmt::print("shards {} and {} are merged\n", low, high);
  return Status::OK();
}

Status ShowBalance(KeyspaceAdmin* admin, bool json) {
  KeyspaceState state;
  ShardMap map;
  NACRE_RETURN_IF_ERROR(admin->Read(&state));
  NACRE_RETURN_IF_ERROR(KeyspaceAdmin::ParseMap(state, &map));
  PrintBalance(EffectiveBalance(map.balance()), json);
  return Status::OK();
}

/// `words` from the first change on, each as NAME=VALUE.
Status SetBalance(KeyspaceAdmin* admin, const std::vector<std::string>& words) {
  BalanceChanges changes;
  for (size_t i = 3; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      return Status::InvalidArgument(fmt::format("'{}' is not of the form NAME=VALUE", words[i]));
    }
    changes[words[i].substr(0, equals)] = words[i].substr(equals + 1);
  }
  return admin->SetBalance(changes);
}

Status ShowKeyspace(KeyspaceAdmin* admin, bool shards, bool json, bool* fine) {
  KeyspaceReport report;
  NACRE_RETURN_IF_ERROR(AskKeyspace(admin, &report));
  if (shards) {
    NACRE_RETURN_IF_ERROR(report.map_status);
    PrintShards(report, json);
    *fine = report.all_served();
    return Status::OK();
  }
  // They are shown without the map, too.
  PrintMembers(report, json);
  *fine = std::ranges::all_of(report.answers,
                              [](const auto& answer) { return answer.second.status.ok(); });
  return report.map_status;
}

}  // namespace

bool IsKeyspaceCommand(const std::vector<std::string>& words) {
  constexpr const char* kCommands[] = {"shards", "members", "move", "balance", "split", "merge"};
  return !words.empty() && std::ranges::find(kCommands, words[0]) != std::end(kCommands);
}

bool FitsKeyspaceCommand(const std::vector<std::string>& words) {
  if (!IsKeyspaceCommand(words) || words.size() < 2) return false;
  const std::string& command = words[0];
  if (command == "shards") return words.size() == 2;
  if (command == "move") return words.size() == 4;
  if (command == "split") return words.size() == 3 || words.size() == 4;
  if (command == "merge") return words.size() == 4;
  if (words.size() == 2) return true;
  const std::string& order = words[2];
  if (command == "balance") {
    if (order == "set") return words.size() > 3;
    return words.size() == 3 && (order == "pause" || order == "resume");
  }
  return words.size() == 4 && (order == "drain" || order == "undrain");
}

Status RunKeyspaceCommand(const KeyspaceRequest& request, const std::vector<std::string>& words,
                          Clock* clock, bool* fine) {
  *fine = true;
  const std::string& command = words[0];
  if (request.coordinator.empty()) return Status::InvalidArgument("--coordinator is missing");
  if (request.timeout.count() <= 0) {
    return Status::InvalidArgument("--timeout_ms must be positive");
  }
  std::unique_ptr<KeyspaceAdmin> admin;
  NACRE_RETURN_IF_ERROR(KeyspaceAdmin::Open(request.coordinator, words[1], request.security,
                                            request.timeout, clock, &admin)
                            .WithContext("--coordinator"));
  if (command == "move") return Move(admin.get(), words[2], words[3]);
  if (command == "split") return Split(admin.get(), words[2], words.size() < 4 ? "" : words[3]);
  if (command == "merge") return MergeShards(admin.get(), words[2], words[3]);
  if (words.size() == 2) {
    return command == "balance"
               ? ShowBalance(admin.get(), request.json)
               : ShowKeyspace(admin.get(), command == "shards", request.json, fine);
  }
  if (command == "balance") {
    if (words[2] == "set") return SetBalance(admin.get(), words);
    return admin->SetBalance({{"paused", words[2] == "pause" ? "true" : "false"}});
  }
  return DrainMember(admin.get(), words[3], words[2] == "drain", request.wait, clock);
}

}  // namespace nacre::ctl
