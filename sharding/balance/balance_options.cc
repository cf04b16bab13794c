#include "sharding/balance/balance_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "sharding/balance/balancer.h"
#include "util/uri.h"

namespace nacre {
namespace {

constexpr uint64_t kImbalancePercentMax = 1000;
/// What is smaller is not worth a database of its own.
constexpr uint64_t kSplitBytesMin = 1 << 20;

Status ParseFlag(const std::string& text, bool* flag) {
  if (text != "true" && text != "1" && text != "false" && text != "0") {
    return Status::InvalidArgument(fmt::format("'{}' is neither true nor false", text));
  }
  *flag = text == "true" || text == "1";
  return Status::OK();
}

Status ChangeOne(const std::string& name, const std::string& text, ShardMap::Balance* balance) {
  if (name == "paused") return ParseFlag(text, &balance->paused);
  if (name == "imbalance_percent") {
    uint64_t percent = 0;
    NACRE_RETURN_IF_ERROR(ParseNumber(text, 0, kImbalancePercentMax, &percent));
    balance->imbalance_percent = static_cast<uint32_t>(percent);
    return Status::OK();
  }
  if (name == "split_bytes") return ParseSize(text, &balance->split_bytes);
  if (name == "split_operations_per_second") {
    return ParseNumber(text, 0, UINT64_MAX, &balance->split_operations_per_second);
  }
  if (name == "merge_bytes") return ParseSize(text, &balance->merge_bytes);
  return Status::InvalidArgument("there is no such option");
}

}  // namespace

Status ChangeBalance(const BalanceChanges& changes, ShardMap::Balance* balance) {
  ShardMap::Balance changed = *balance;
  for (const auto& [name, text] : changes) {
    NACRE_RETURN_IF_ERROR(ChangeOne(name, text, &changed).WithContext(name));
  }
  const uint64_t split_bytes = EffectiveBalance(changed).split_bytes;
  if (split_bytes < kSplitBytesMin) {
    return Status::InvalidArgument("split_bytes: less than " + FormatBytes(kSplitBytesMin));
  }
  if (changed.merge_bytes > split_bytes / 2) {
    // What was split would be merged.
    return Status::InvalidArgument(
        fmt::format("merge_bytes: {} is more than half of split_bytes, {}",
                    FormatBytes(changed.merge_bytes), FormatBytes(split_bytes)));
  }
  *balance = changed;
  return Status::OK();
}

std::unordered_map<std::string, std::string> TextsOf(const ShardMap::Balance& balance) {
  const ShardMap::Balance all = EffectiveBalance(balance);
  return {{"paused", all.paused ? "true" : "false"},
          {"imbalance_percent", std::to_string(all.imbalance_percent)},
          {"split_bytes", std::to_string(all.split_bytes)},
          {"split_operations_per_second", std::to_string(all.split_operations_per_second)},
          {"merge_bytes", std::to_string(all.merge_bytes)}};
}

ShardMap::Balance EffectiveBalance(const ShardMap::Balance& balance) {
  const auto either = [](auto number, auto standard) { return number != 0 ? number : standard; };
  ShardMap::Balance all;
  all.paused = balance.paused;
  all.imbalance_percent = either(balance.imbalance_percent, Balancer::kImbalancePercent);
  all.split_bytes = either(balance.split_bytes, Balancer::kSplitBytes);
  all.split_operations_per_second =
      either(balance.split_operations_per_second, Balancer::kSplitOperationsPerSecond);
  // A map of an earlier release may have more.
  all.merge_bytes =
      std::min(either(balance.merge_bytes, Balancer::kMergeBytes), all.split_bytes / 2);
  return all;
}

}  // namespace nacre
