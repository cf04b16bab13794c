#include "ctl/keyspace/keyspace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/slice.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

/// So much of a key is shown in a table.
constexpr size_t kKeyCharacters = 32;

bool IsPrintable(const std::string& key) {
  return std::ranges::all_of(key, [](char c) { return c >= ' ' && c <= '~'; });
}

/// "'tenant7'", "0x00ff..."; "-" for the first shard, which begins before all keys.
std::string KeyText(const std::string& key) {
  if (key.empty()) return "-";
  const bool printable = IsPrintable(key);
  std::string text = printable ? key : "0x" + Slice(key).ToString(/*hex=*/true);
  if (text.size() > kKeyCharacters) text = text.substr(0, kKeyCharacters - 3) + "...";
  return printable ? "'" + text + "'" : text;
}

/// A text: programs that take all numbers of JSON for floating-point ones would round it.
std::string IdJson(int64_t member) { return member == 0 ? "null" : fmt::format("\"{}\"", member); }

std::string AddressOf(const KeyspaceState& state, int64_t member) {
  const MemberInfo* const info = state.Find(member);
  return info == nullptr || !info->serves() ? "-" : info->address;
}

ShardReport ReportOf(const KeyspaceReport& report, const ShardMap::Shard& shard) {
  ShardReport reported;
  reported.shard = shard;
  const auto load_of = [&](const KeyspaceAdmin::Answer& answer) {
    const auto load = answer.loads.find(shard.id);
    if (load == answer.loads.end()) return false;
    reported.load = load->second;
    return true;
  };
  const auto owner = report.answers.find(shard.owner);
  if (owner == report.answers.end()) return reported;
  if (!owner->second.status.ok()) {
    reported.state = ShardState::kSilent;
  } else if (load_of(owner->second)) {
    reported.state = ShardState::kServed;
  } else {
    const bool elsewhere = std::ranges::any_of(
        report.answers, [&](const auto& answer) { return load_of(answer.second); });
    reported.state = elsewhere ? ShardState::kMoving : ShardState::kOpening;
  }
  return reported;
}

std::string ShardJson(const KeyspaceReport& report, const ShardReport& reported) {
  const ShardMap::Shard& shard = reported.shard;
  const std::string address = AddressOf(report.state, shard.owner);
  return fmt::format(
      "{{\"id\": {}, \"begin\": {}, \"begin_hex\": \"{}\", \"owner\": {}, \"address\": {}, "
      "\"epoch\": {}, \"bytes\": {}, \"operations\": {}, \"state\": \"{}\"}}",
      shard.id, IsPrintable(shard.begin) ? JsonString(shard.begin) : "null",
      Slice(shard.begin).ToString(/*hex=*/true), IdJson(shard.owner),
      address == "-" ? "null" : JsonString(address), shard.epoch, reported.load.bytes,
      reported.load.operations, ToString(reported.state));
}

std::string MemberJson(const KeyspaceReport& report, const MemberInfo& member) {
  const auto answer = report.answers.find(member.id);
  std::string json = fmt::format("{{\"id\": {}, \"address\": {}, \"leads\": {}", IdJson(member.id),
                                 !member.serves() ? "null" : JsonString(member.address),
                                 member.id == report.state.leader);
  if (!member.client_address.empty()) {
    json += ", \"client_address\": " + JsonString(member.client_address);
  }
  if (report.map_status.ok()) {
    json += fmt::format(", \"draining\": {}, \"shards\": {}", report.map.IsDraining(member.id),
                        report.map.CountOf(member.id));
  }
  if (answer != report.answers.end()) {
    json += fmt::format(", \"reachable\": {}", answer->second.status.ok());
    if (!answer->second.status.ok()) {
      json += ", \"error\": " + JsonString(answer->second.status.ToString());
    }
  }
  return json + "}";
}

template <typename Items, typename Text>
std::string Lines(const Items& items, const Text& text) {
  std::string list;
  for (const auto& item : items) list += (list.empty() ? "" : ",\n  ") + text(item);
  return list;
}

/// The width of a column with these texts under this title.
template <typename Items, typename Text>
size_t WidthOf(const Items& items, size_t title, const Text& text) {
  size_t width = title;
  for (const auto& item : items) width = std::max(width, text(item).size());
  return width;
}

}  // namespace

const char* ToString(ShardState state) {
  switch (state) {
    case ShardState::kServed:
      return "served";
    case ShardState::kOpening:
      return "opening";
    case ShardState::kMoving:
      return "moving";
    case ShardState::kSilent:
      return "silent";
    case ShardState::kOrphan:
      return "orphan";
  }
  return "unknown";
}

bool KeyspaceReport::all_served() const {
  return map_status.ok() && std::ranges::all_of(shards, [](const ShardReport& shard) {
           return shard.state == ShardState::kServed;
         });
}

Status AskKeyspace(KeyspaceAdmin* admin, KeyspaceReport* report) {
  *report = {};
  NACRE_RETURN_IF_ERROR(admin->Read(&report->state));
  report->map_status = KeyspaceAdmin::ParseMap(report->state, &report->map);
  report->answers = admin->Loads(report->state);
  for (const ShardMap::Shard& shard : report->map.shards()) {
    report->shards.push_back(ReportOf(*report, shard));
  }
  return Status::OK();
}

std::string NameOf(const KeyspaceState& state, int64_t member) {
  const std::string address = AddressOf(state, member);
  if (address == "-") return fmt::format("member {}", member);
  return fmt::format("{} (member {})", address, member);
}

void PrintShards(const KeyspaceReport& report, bool json) {
  if (json) {
    const auto text = [&](const ShardReport& shard) { return ShardJson(report, shard); };
    fmt::print("{{\"shards\": [\n  {}]}}\n", Lines(report.shards, text));
    return;
  }
  const auto begin_of = [](const ShardReport& shard) { return KeyText(shard.shard.begin); };
  const auto owner_of = [](const ShardReport& shard) {
    return shard.shard.owner == 0 ? std::string("-") : std::to_string(shard.shard.owner);
  };
  const auto address_of = [&](const ShardReport& shard) {
    return AddressOf(report.state, shard.shard.owner);
  };
  const size_t begin_width = WidthOf(report.shards, 5, begin_of);
  const size_t owner_width = WidthOf(report.shards, 5, owner_of);
  const size_t address_width = WidthOf(report.shards, 7, address_of);
  fmt::print("{:>5} {:<{}} {:<{}} {:<{}} {:>5} {:>10} {:>12}  {}\n", "shard", "begin", begin_width,
             "owner", owner_width, "address", address_width, "epoch", "bytes", "operations",
             "state");
  for (const ShardReport& shard : report.shards) {
    const bool known = shard.state == ShardState::kServed || shard.state == ShardState::kMoving;
    fmt::print("{:>5} {:<{}} {:<{}} {:<{}} {:>5} {:>10} {:>12}  {}\n", shard.shard.id,
               begin_of(shard), begin_width, owner_of(shard), owner_width, address_of(shard),
               address_width, shard.shard.epoch, known ? FormatBytes(shard.load.bytes) : "-",
               known ? std::to_string(shard.load.operations) : "-", ToString(shard.state));
  }
}

void PrintMembers(const KeyspaceReport& report, bool json) {
  const std::vector<MemberInfo>& members = report.state.members;
  if (json) {
    const auto text = [&](const MemberInfo& member) { return MemberJson(report, member); };
    fmt::print("{{\"members\": [\n  {}]}}\n", Lines(members, text));
    return;
  }
  const auto id_of = [](const MemberInfo& member) { return std::to_string(member.id); };
  const auto address_of = [&](const MemberInfo& member) {
    return AddressOf(report.state, member.id);
  };
  const size_t id_width = WidthOf(members, 6, id_of);
  const size_t address_width = WidthOf(members, 7, address_of);
  fmt::print("{:<{}} {:<{}} {:<5} {:<8} {:>6}\n", "member", id_width, "address", address_width,
             "leads", "draining", "shards");
  const bool known = report.map_status.ok();
  for (const MemberInfo& member : members) {
    const bool leads = member.id == report.state.leader;
    const bool draining = known && report.map.IsDraining(member.id);
    const auto answer = report.answers.find(member.id);
    const bool silent = answer != report.answers.end() && !answer->second.status.ok();
    fmt::print("{:<{}} {:<{}} {:<5} {:<8} {:>6}{}\n", member.id, id_width, address_of(member),
               address_width, leads ? "yes" : "-", draining ? "yes" : "-",
               known ? std::to_string(report.map.CountOf(member.id)) : "-",
               silent ? "  " + answer->second.status.ToString() : "");
  }
}

void PrintBalance(const ShardMap::Balance& balance, bool json) {
  if (json) {
    fmt::print(
        "{{\"paused\": {}, \"imbalance_percent\": {}, \"split_bytes\": {}, "
        "\"split_operations_per_second\": {}, \"merge_bytes\": {}}}\n",
        balance.paused, balance.imbalance_percent, balance.split_bytes,
        balance.split_operations_per_second, balance.merge_bytes);
    return;
  }
  fmt::print("moves        {}\n", balance.paused ? "paused" : "by themselves");
  fmt::print("imbalance    up to {} %\n", balance.imbalance_percent);
  fmt::print("split        above {}", FormatBytes(balance.split_bytes));
  if (balance.split_operations_per_second > 0) {
    fmt::print(", or {} operations a second", balance.split_operations_per_second);
  }
  fmt::print("\nmerge        {}\n", balance.merge_bytes == 0
                                        ? std::string("never")
                                        : "below " + FormatBytes(balance.merge_bytes));
}

}  // namespace nacre::ctl
