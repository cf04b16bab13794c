#include "server/session/settings.h"

#include <utility>

#include "server/resp/numbers.h"
#include "server/session/key_events.h"

namespace nacre::server {
namespace {

constexpr int64_t kMax = int64_t{1} << 31;

}  // namespace

Settings::Settings()
    : numbers_{{"maxclients", {&clients_max, 1, kMax}},
               {"timeout", {&idle_seconds_max, 0, kMax}},
               {"slowlog-log-slower-than", {&slow_micros, -1, int64_t{1} << 53}},
               {"slowlog-max-len", {&slow_log_entries_max, 0, 1 << 20}},
               {"acllog-max-len", {&acl_log_entries_max, 0, 1 << 20}}},
      accepted_{{"acl-pubsub-default", "resetchannels"}, {"activedefrag", "no"},
                {"active-expire-effort", "1"},           {"hash-max-listpack-entries", "512"},
                {"hash-max-listpack-value", "64"},       {"hash-max-ziplist-entries", "512"},
                {"hash-max-ziplist-value", "64"},        {"hz", "10"},
                {"latency-monitor-threshold", "0"},      {"lazyfree-lazy-expire", "no"},
                {"lazyfree-lazy-server-del", "no"},      {"lazyfree-lazy-user-del", "no"},
                {"lazyfree-lazy-user-flush", "no"},      {"list-compress-depth", "0"},
                {"list-max-listpack-size", "-2"},        {"list-max-ziplist-size", "-2"},
                {"set-max-intset-entries", "512"},       {"zset-max-listpack-entries", "128"},
                {"zset-max-listpack-value", "64"},       {"zset-max-ziplist-entries", "128"},
                {"zset-max-ziplist-value", "64"}} {}

void Settings::set_password(std::string password) {
  const MutexLock lock(&mutex_);
  password_ = std::move(password);
}

void Settings::SetFixed(const std::string& name, std::string value) {
  const MutexLock lock(&mutex_);
  fixed_[name] = std::move(value);
}

std::map<std::string, std::string> Settings::Get(std::string_view pattern) const {
  const std::string lower = LowerCase(pattern);
  std::map<std::string, std::string> found;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (MatchesGlob(lower, name)) found[name] = value;
  };
  for (const auto& [name, number] : numbers_) {
    add(name, std::to_string(number.value->load(std::memory_order_relaxed)));
  }
  const MutexLock lock(&mutex_);
  for (const auto& [name, value] : fixed_) add(name, value);
  for (const auto& [name, value] : accepted_) add(name, value);
  add("requirepass", password_);
  add("notify-keyspace-events", FormatEventClasses(event_classes.load(std::memory_order_relaxed)));
  return found;
}

Status Settings::Set(std::string_view name, std::string_view value, bool check_only) {
  const std::string lower = LowerCase(name);
  if (const auto number = numbers_.find(lower); number != numbers_.end()) {
    int64_t parsed = 0;
    if (!ParseInteger(value, &parsed)) {
      return Status::InvalidArgument("argument couldn't be parsed into an integer");
    }
    if (parsed < number->second.min || parsed > number->second.max) {
      return Status::InvalidArgument("argument must be between " +
                                     std::to_string(number->second.min) + " and " +
                                     std::to_string(number->second.max) + " inclusive");
    }
    if (!check_only) number->second.value->store(parsed, std::memory_order_relaxed);
    return Status::OK();
  }
  const MutexLock lock(&mutex_);
  if (lower == "requirepass") {
    if (!check_only) password_ = value;
    return Status::OK();
  }
  if (lower == "notify-keyspace-events") {
    uint32_t classes = 0;
    if (!ParseEventClasses(value, &classes)) {
      return Status::InvalidArgument("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
    }
    if (!check_only) event_classes.store(classes, std::memory_order_relaxed);
    return Status::OK();
  }
  if (fixed_.contains(lower)) return Status::InvalidArgument("can't set immutable config");
  const auto accepted = accepted_.find(lower);
  if (accepted == accepted_.end()) return Status::NotFound(lower);
  if (lower == "acl-pubsub-default" && value != "allchannels" && value != "resetchannels") {
    return Status::InvalidArgument(
        "argument(s) must be one of the following: allchannels, "
        "resetchannels");
  }
  if (!check_only) accepted->second = value;
  return Status::OK();
}

}  // namespace nacre::server
