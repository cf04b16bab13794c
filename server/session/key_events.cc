#include "server/session/key_events.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

/// Bits of classes by their letters. Those of "A" that are no events here have bits as well.
constexpr struct {
  char letter;
  uint32_t bit;
} kLetters[] = {
    {'g', kGenericEvents}, {'$', kStringEvents},    {'l', kListEvents},    {'s', kSetEvents},
    {'h', kHashEvents},    {'z', kSortedSetEvents}, {'x', kExpiredEvents}, {'e', 1 << 9},
    {'t', 1 << 10},        {'d', 1 << 11},          {'n', 1 << 12},        {'K', kEventsByKey},
    {'E', kEventsByName},  {'m', 1 << 13},
};

/// The event of a command on the key that it changes.
struct CommandEvent {
  const char* name = nullptr;  ///< Null: there is none, but that the key is gone.
  uint32_t kind = 0;
  /// It takes elements out: a key that is gone thereby has this event, and "del". Else "del" only.
  bool takes = false;
};

const std::unordered_map<std::string_view, CommandEvent>& CommandEvents() {
  constexpr uint32_t kG = kGenericEvents;
  constexpr uint32_t kT = kStringEvents;
  constexpr uint32_t kL = kListEvents;
  constexpr uint32_t kS = kSetEvents;
  constexpr uint32_t kH = kHashEvents;
  constexpr uint32_t kZ = kSortedSetEvents;
  static const std::unordered_map<std::string_view, CommandEvent> kEvents = {
      {"append", {"append", kT}},
      {"bitfield", {"setbit", kT}},
      {"bitop", {"set", kT}},
      {"blmpop", {"lpop", kL, true}},
      {"blpop", {"lpop", kL, true}},
      {"brpop", {"rpop", kL, true}},
      {"bzmpop", {"zpopmin", kZ, true}},
      {"bzpopmax", {"zpopmax", kZ, true}},
      {"bzpopmin", {"zpopmin", kZ, true}},
      {"copy", {"copy_to", kG}},
      {"del", {}},
      {"decr", {"incrby", kT}},
      {"decrby", {"incrby", kT}},
      {"expire", {"expire", kG}},
      {"expireat", {"expire", kG}},
      {"getdel", {}},
      {"getex", {"expire", kG}},
      {"getset", {"set", kT}},
      {"hdel", {"hdel", kH, true}},
      {"hincrby", {"hincrby", kH}},
      {"hincrbyfloat", {"hincrbyfloat", kH}},
      {"hmset", {"hset", kH}},
      {"hset", {"hset", kH}},
      {"hsetnx", {"hset", kH}},
      {"incr", {"incrby", kT}},
      {"incrby", {"incrby", kT}},
      {"incrbyfloat", {"incrbyfloat", kT}},
      {"linsert", {"linsert", kL}},
      {"lmpop", {"lpop", kL, true}},
      {"lpop", {"lpop", kL, true}},
      {"lpush", {"lpush", kL}},
      {"lpushx", {"lpush", kL}},
      {"lrem", {"lrem", kL, true}},
      {"lset", {"lset", kL}},
      {"ltrim", {"ltrim", kL, true}},
      {"mset", {"set", kT}},
      {"msetnx", {"set", kT}},
      {"persist", {"persist", kG}},
      {"pexpire", {"expire", kG}},
      {"pexpireat", {"expire", kG}},
      {"psetex", {"set", kT}},
      {"rpop", {"rpop", kL, true}},
      {"rpush", {"rpush", kL}},
      {"rpushx", {"rpush", kL}},
      {"sadd", {"sadd", kS}},
      {"sdiffstore", {"sdiffstore", kS}},
      {"set", {"set", kT}},
      {"setbit", {"setbit", kT}},
      {"setex", {"set", kT}},
      {"setnx", {"set", kT}},
      {"setrange", {"setrange", kT}},
      {"sinterstore", {"sinterstore", kS}},
      {"spop", {"spop", kS, true}},
      {"srem", {"srem", kS, true}},
      {"sunionstore", {"sunionstore", kS}},
      {"unlink", {}},
      {"zadd", {"zadd", kZ}},
      {"zdiffstore", {"zdiffstore", kZ}},
      {"zincrby", {"zincr", kZ}},
      {"zinterstore", {"zinterstore", kZ}},
      {"zmpop", {"zpopmin", kZ, true}},
      {"zpopmax", {"zpopmax", kZ, true}},
      {"zpopmin", {"zpopmin", kZ, true}},
      {"zrangestore", {"zrangestore", kZ}},
      {"zrem", {"zrem", kZ, true}},
      {"zremrangebylex", {"zremrangebylex", kZ, true}},
      {"zremrangebyrank", {"zremrangebyrank", kZ, true}},
      {"zremrangebyscore", {"zremrangebyscore", kZ, true}},
      {"zunionstore", {"zunionstore", kZ}},
  };
  return kEvents;
}

/// The word behind the counted keys of LMPOP, ZMPOP and those of them that wait.
std::string_view BehindKeys(const Call& call) {
  const size_t at = (call.command->name[0] == 'b' ? 3 : 2) + KeysOf(call).size();
  return at < call.argc() ? call.arg(at) : std::string_view();
}

/// The event as the arguments have it. Nothing for those that run other commands, which have
/// theirs.
std::optional<CommandEvent> EventOf(const Call& call) {
  const std::string_view name = call.command->name;
  const auto found = CommandEvents().find(name);
  if (found == CommandEvents().end()) return std::nullopt;
  CommandEvent event = found->second;
  if (name == "getex" && HasWord(call, 2, "PERSIST")) event.name = "persist";
  if (name == "zadd" && HasWord(call, 2, "INCR")) event.name = "zincr";
  if (name.ends_with("lmpop") && SameWord(BehindKeys(call), "RIGHT")) event.name = "rpop";
  if (name.ends_with("zmpop") && SameWord(BehindKeys(call), "MAX")) event.name = "zpopmax";
  return event;
}

/// Whether a SET gives the key a time to expire at.
bool SetsExpiry(const Call& call) {
  const std::string_view name = call.command->name;
  if (name == "setex" || name == "psetex") return true;
  return name == "set" && call.argc() > 3 &&
         (HasWord(call, 3, "EX") || HasWord(call, 3, "PX") || HasWord(call, 3, "EXAT") ||
          HasWord(call, 3, "PXAT"));
}

/// The events of one command's changes.
class EventsOfCall {
 public:
  EventsOfCall(const Call& call, std::span<const TouchedKey> touched, std::vector<KeyEvent>* events)
      : call_(call), touched_(touched), events_(*events) {}

  void Find() {
    const std::string_view name = call_.command->name;
    if (name == "rename" || name == "renamenx") {
      OfTwo({"rename_from", kGenericEvents}, {"rename_to", kGenericEvents}, /*del=*/false);
    } else if (name == "smove") {
      OfTwo({"srem", kSetEvents}, {"sadd", kSetEvents}, /*del=*/true);
    } else if (name == "lmove" || name == "blmove") {
      OfTwo({SameWord(call_.arg(3), "LEFT") ? "lpop" : "rpop", kListEvents},
            {SameWord(call_.arg(4), "LEFT") ? "lpush" : "rpush", kListEvents}, /*del=*/true);
    } else if (name == "rpoplpush" || name == "brpoplpush") {
      OfTwo({"rpop", kListEvents}, {"lpush", kListEvents}, /*del=*/true);
    } else if (name == "move") {
      for (const bool to : {false, true}) {
        for (const TouchedKey& each : touched_) {
          if (each.there != to) continue;
          Add(each.database, each.key, to ? "move_to" : "move_from", kGenericEvents);
        }
      }
    } else if (const std::optional<CommandEvent> event = EventOf(call_); event.has_value()) {
      OfEach(*event);
    }
  }

 private:
  void Add(int database, std::string_view key, const char* name, uint32_t kind) {
    events_.push_back({database, std::string(key), name, kind});
  }

  /// Whether the key is there since; nothing if the command has not changed it.
  std::optional<bool> Outcome(std::string_view key) const {
    std::optional<bool> there;
    for (const TouchedKey& each : touched_) {
      if (each.key == key) there = each.there;
    }
    return there;
  }

  /// The command takes something from the key that is its first argument to the second one.
  void OfTwo(CommandEvent from, CommandEvent to, bool del) {
    const std::optional<bool> source = Outcome(call_.arg(1));
    const std::optional<bool> target = Outcome(call_.arg(2));
    if (source.has_value()) Add(call_.database, call_.arg(1), from.name, from.kind);
    if (target.has_value()) Add(call_.database, call_.arg(2), to.name, to.kind);
    if (del && source == false) Add(call_.database, call_.arg(1), "del", kGenericEvents);
  }

  void OfEach(const CommandEvent& event) {
    for (size_t i = 0; i < touched_.size(); ++i) {
      const TouchedKey& each = touched_[i];
      // What counts is what it is in the end.
      const bool again = std::any_of(
          touched_.begin() + static_cast<ptrdiff_t>(i) + 1, touched_.end(), [&](const auto& other) {
            return other.database == each.database && other.key == each.key;
          });
      if (again) continue;
      if (event.name != nullptr && (each.there || event.takes)) {
        Add(each.database, each.key, event.name, event.kind);
      }
      if (!each.there) Add(each.database, each.key, "del", kGenericEvents);
      if (each.there && SetsExpiry(call_)) {
        Add(each.database, each.key, "expire", kGenericEvents);
      }
    }
  }

  const Call& call_;
  const std::span<const TouchedKey> touched_;
  std::vector<KeyEvent>& events_;
};

void Publish(ServerState* server, uint32_t classes, int database, const std::string& key,
             const char* name) {
  const std::string suffix = "@" + std::to_string(database) + "__:";
  if ((classes & kEventsByKey) != 0) server->pubsub.Publish("__keyspace" + suffix + key, name);
  if ((classes & kEventsByName) != 0) server->pubsub.Publish("__keyevent" + suffix + name, key);
}

uint32_t ClassesOf(const ServerState& server) {
  return server.settings.event_classes.load(std::memory_order_relaxed);
}

}  // namespace

bool ParseEventClasses(std::string_view letters, uint32_t* classes) {
  *classes = 0;
  for (const char letter : letters) {
    if (letter == 'A') {
      *classes |= kAllEvents;
      continue;
    }
    const auto found =
        std::ranges::find_if(kLetters, [&](const auto& each) { return each.letter == letter; });
    if (found == std::end(kLetters)) return false;
    *classes |= found->bit;
  }
  return true;
}

std::string FormatEventClasses(uint32_t classes) {
  std::string letters;
  const bool all = (classes & kAllEvents) == kAllEvents;
  if (all) letters += 'A';
  for (const auto& each : kLetters) {
    if ((classes & each.bit) == 0 || (all && (each.bit & kAllEvents) != 0)) continue;
    letters += each.letter;
  }
  return letters;
}

KeyEventScope::~KeyEventScope() {
  if (ClassesOf(*call_.server) == 0) [[likely]]
    return;
  const std::span<const TouchedKey> touched(call_.unit->touched());
  if (touched.size() <= before_) return;
  EventsOfCall(call_, touched.subspan(before_), call_.unit->events()).Find();
}

void PublishEvents(ServerState* server, const std::vector<KeyEvent>& events,
                   const std::vector<ExpiredKey>& expired) {
  const uint32_t classes = ClassesOf(*server);
  if ((classes & (kEventsByKey | kEventsByName)) == 0) [[likely]]
    return;
  if ((classes & kExpiredEvents) != 0) {
    for (const ExpiredKey& each : expired) {
      Publish(server, classes, each.database, each.key, "expired");
    }
  }
  for (const KeyEvent& event : events) {
    if ((classes & event.kind) == 0) continue;
    Publish(server, classes, event.database, event.key, event.name);
  }
}

}  // namespace nacre::server
