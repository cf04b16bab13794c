#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nacre/version.h"
#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

// ---- INFO ---------------------------------------------------------------------------------------

std::string ServerSection(const Call& call) {
  const ServerState& server = *call.server;
  const uint64_t seconds =
      (call.loop->loop.clock()->NowNanos() - server.started_at_ns) / 1'000'000'000;
  return fmt::format(
      "redis_version:{}\r\nnacre_version:{}\r\nredis_mode:{}\r\narch_bits:64\r\n"
      "multiplexing_api:epoll\r\nprocess_id:{}\r\nrun_id:{}\r\ntcp_port:{}\r\n"
      "uptime_in_seconds:{}\r\nuptime_in_days:{}\r\nio_threads_active:{}\r\n",
      kRedisVersion, GetNacreVersionAsString(/*with_commit=*/true),
      server.cluster == nullptr ? "standalone" : "cluster", ::getpid(), server.run_id,
      server.address.substr(server.address.rfind(':') + 1), seconds, seconds / 86'400,
      server.loops.size() > 1 ? 1 : 0);
}

std::string ClientsSection(const Call& call) {
  return fmt::format("connected_clients:{}\r\nmaxclients:{}\r\nblocked_clients:{}\r\n",
                     call.server->connections.load(std::memory_order_relaxed),
                     call.server->settings.clients_max.load(std::memory_order_relaxed),
                     call.server->watches.blocked());
}

std::string MemorySection(const Call& call) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::string text =
      fmt::format("used_memory_peak:{}\r\nmaxmemory:0\r\nnumber_of_cached_scripts:{}\r\n",
                  usage.ru_maxrss * 1024, call.server->scripts.size());
  uint64_t tables = 0;
  if (call.access->store != nullptr &&
      call.access->store->db()->GetIntProperty("nacre.total-sst-files-size", &tables)) {
    text += fmt::format("nacre_table_bytes:{}\r\n", tables);
  }
  return text;
}

std::string StatsSection(const Call& call) {
  uint64_t commands = 0;
  for (const auto& loop : call.server->loops) {
    commands += loop->commands.load(std::memory_order_relaxed);
  }
  return fmt::format(
      "total_connections_received:{}\r\ntotal_commands_processed:{}\r\nrejected_connections:{}\r\n"
      "expired_keys:{}\r\n",
      call.server->connections_total.load(std::memory_order_relaxed), commands,
      call.server->rejected.load(std::memory_order_relaxed),
      call.server->expired_keys.load(std::memory_order_relaxed));
}

std::string ReplicationSection(const Call& call) {
  if (call.server->serving(*call.loop)) return "role:master\r\nconnected_slaves:0\r\n";
  const auto [host, port] = Master::Divide(call.server->master.address());
  return fmt::format(
      "role:slave\r\nmaster_host:{}\r\nmaster_port:{}\r\nmaster_link_status:down\r\n", host, port);
}

std::string CpuSection(const Call& /*call*/) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return fmt::format("used_cpu_sys:{}.{:06d}\r\nused_cpu_user:{}.{:06d}\r\n", usage.ru_stime.tv_sec,
                     usage.ru_stime.tv_usec, usage.ru_utime.tv_sec, usage.ru_utime.tv_usec);
}

std::string ClusterSection(const Call& call) {
  return fmt::format("cluster_enabled:{}\r\n", call.server->cluster == nullptr ? 0 : 1);
}

struct InfoSection {
  const char* name;
  std::string (*text)(const Call& call);
};
constexpr InfoSection kInfoSections[] = {
    {"Server", &ServerSection},   {"Clients", &ClientsSection},         {"Memory", &MemorySection},
    {"Stats", &StatsSection},     {"Replication", &ReplicationSection}, {"CPU", &CpuSection},
    {"Cluster", &ClusterSection},
};

Task<void> Info(Call& call) {
  std::string text;
  const auto wanted = [&](const char* name) {
    if (call.argc() == 1) return true;
    for (size_t i = 1; i < call.argc(); ++i) {
      const std::string_view word = call.arg(i);
      if (SameWord(word, name) || SameWord(word, "all") || SameWord(word, "default") ||
          SameWord(word, "everything")) {
        return true;
      }
    }
    return false;
  };
  for (const InfoSection& section : kInfoSections) {
    if (!wanted(section.name)) continue;
    if (!text.empty()) text += "\r\n";
    text += std::string("# ") + section.name + "\r\n" + section.text(call);
  }
  call.reply.Verbatim(text);
  co_return;
}

// ---- COMMAND ------------------------------------------------------------------------------------

void DescribeCommand(Call& call, const Command& command) {
  std::vector<const char*> flags;
  if ((command.flags & kWrites) != 0) flags.push_back("write");
  if ((command.flags & kReads) != 0) flags.push_back("readonly");
  if ((command.flags & kFast) != 0) flags.push_back("fast");
  if ((command.flags & kAdmin) != 0) flags.push_back("admin");
  if ((command.flags & kBlocks) != 0) flags.push_back("blocking");
  if ((command.flags & kNoAuth) != 0) flags.push_back("no_auth");
  if ((command.flags & kNoMulti) != 0) flags.push_back("no_multi");
  if (command.keys != nullptr) flags.push_back("movablekeys");
  call.reply.Array(6);
  call.reply.Bulk(command.name);
  call.reply.Integer(command.arity);
  call.reply.Set(flags.size());
  for (const char* flag : flags) call.reply.Simple(flag);
  call.reply.Integer(command.first_key);
  call.reply.Integer(command.last_key);
  call.reply.Integer(command.key_step);
}

void AnswerKeys(Call& call) {
  Call other;
  other.request.args.assign(call.request.args.begin() + 2, call.request.args.end());
  other.command = call.server->FindCommand(call.arg(2));
  if (other.command == nullptr) {
    call.reply.Error("ERR Invalid command specified");
    return;
  }
  if (!TakesArguments(*other.command, other.argc())) {
    call.reply.Error("ERR Invalid number of arguments specified for command");
    return;
  }
  const std::vector<KeyRef> keys = KeysOf(other);
  if (keys.empty()) {
    call.reply.Error("ERR The command has no key arguments");
    return;
  }
  call.reply.Array(keys.size());
  for (const KeyRef& key : keys) call.reply.Bulk(key.key);
}

Task<void> CommandCommand(Call& call) {
  const auto& commands = call.server->commands;
  const std::string_view what = call.argc() > 1 ? call.arg(1) : "INFO";
  if (SameWord(what, "COUNT") && call.argc() == 2) {
    call.reply.Integer(static_cast<int64_t>(commands.size()));
  } else if (SameWord(what, "LIST") && call.argc() == 2) {
    call.reply.Array(commands.size());
    for (const auto& [name, command] : commands) call.reply.Bulk(name);
  } else if (SameWord(what, "GETKEYS") && call.argc() > 2) {
    AnswerKeys(call);
  } else if (SameWord(what, "INFO") && call.argc() > 2) {
    call.reply.Array(call.argc() - 2);
    for (size_t i = 2; i < call.argc(); ++i) {
      const Command* const command = call.server->FindCommand(call.arg(i));
      command == nullptr ? call.reply.NullArray() : DescribeCommand(call, *command);
    }
  } else if (SameWord(what, "INFO")) {
    call.reply.Array(commands.size());
    for (const auto& [name, command] : commands) DescribeCommand(call, *command);
  } else if (SameWord(what, "DOCS")) {
    // There are no texts; docs/server.md has the table of commands.
    call.reply.Map(0);
  } else {
    UnknownSubcommand(call);
  }
  co_return;
}

// ---- CONFIG -------------------------------------------------------------------------------------

void ConfigGet(Call& call) {
  std::map<std::string, std::string> found;
  for (size_t i = 2; i < call.argc(); ++i) found.merge(call.server->settings.Get(call.arg(i)));
  call.reply.Map(found.size());
  for (const auto& [name, value] : found) {
    call.reply.Bulk(name);
    call.reply.Bulk(value);
  }
}

/// Has a setting take effect that is about users.
void TellUsers(ServerState* server, std::string_view name, std::string_view value) {
  if (SameWord(name, "requirepass")) {
    server->acl.SetDefaultPassword(std::string(value));
  } else if (SameWord(name, "acl-pubsub-default")) {
    server->acl.all_channels.store(value == "allchannels", std::memory_order_relaxed);
  }
}

void ConfigSet(Call& call) {
  // All or nothing.
  for (const bool check_only : {true, false}) {
    for (size_t i = 2; i + 1 < call.argc(); i += 2) {
      const Status set = call.server->settings.Set(call.arg(i), call.arg(i + 1), check_only);
      if (set.ok() && !check_only) TellUsers(call.server, call.arg(i), call.arg(i + 1));
      if (set.ok()) continue;
      const std::string name(call.arg(i));
      call.reply.Error(set.IsNotFound()
                           ? "ERR Unknown option or number of arguments for CONFIG SET - '" + name +
                                 "'"
                           : "ERR CONFIG SET failed (possibly related to argument '" + name +
                                 "') - " + std::string(set.message()));
      return;
    }
  }
  call.reply.Ok();
}

Task<void> Config(Call& call) {
  const std::string_view what = call.arg(1);
  if (SameWord(what, "GET") && call.argc() > 2) {
    ConfigGet(call);
  } else if (SameWord(what, "SET") && call.argc() > 3 && call.argc() % 2 == 0) {
    ConfigSet(call);
  } else if (SameWord(what, "RESETSTAT") && call.argc() == 2) {
    call.server->connections_total.store(0, std::memory_order_relaxed);
    call.server->rejected.store(0, std::memory_order_relaxed);
    call.server->expired_keys.store(0, std::memory_order_relaxed);
    for (const auto& loop : call.server->loops) loop->commands.store(0, std::memory_order_relaxed);
    call.reply.Ok();
  } else {
    UnknownSubcommand(call);
  }
  co_return;
}

// ---- The rest -----------------------------------------------------------------------------------

Task<void> SlowLogCommand(Call& call) {
  const std::string_view what = call.arg(1);
  SlowLog& log = call.server->slow_log;
  if (SameWord(what, "LEN") && call.argc() == 2) {
    call.reply.Integer(static_cast<int64_t>(log.size()));
  } else if (SameWord(what, "RESET") && call.argc() == 2) {
    log.Reset();
    call.reply.Ok();
  } else if (SameWord(what, "GET") && call.argc() <= 3) {
    int64_t count = 10;
    if (call.argc() == 3 && !IntegerArgument(call, 2, &count)) co_return;
    if (count < -1) {
      call.reply.Error("ERR count should be greater than or equal to -1");
      co_return;
    }
    const auto entries = log.Get(count < 0 ? SIZE_MAX : static_cast<size_t>(count));
    call.reply.Array(entries.size());
    for (const SlowCommand& entry : entries) {
      call.reply.Array(6);
      call.reply.Integer(entry.id);
      call.reply.Integer(entry.unix_seconds);
      call.reply.Integer(entry.micros);
      call.reply.Array(entry.args.size());
      for (const std::string& arg : entry.args) call.reply.Bulk(arg);
      call.reply.Bulk(entry.client_address);
      call.reply.Bulk(entry.client_name);
    }
  } else {
    UnknownSubcommand(call);
  }
}

/// DEBUG SLEEP only: the client waits, and no other one.
Task<void> Debug(Call& call) {
  double seconds = 0;
  if (call.argc() != 3 || !SameWord(call.arg(1), "SLEEP")) {
    UnknownSubcommand(call);
  } else if (!ParseDouble(call.arg(2), &seconds) || seconds < 0 || seconds > 60) {
    call.reply.Error(kNotFloat);
  } else {
    co_await Sleep(&call.loop->loop, std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
    call.reply.Ok();
  }
}

constexpr Command kServerCommands[] = {
    {"info", &Info, -1, kWithoutStore},
    WithSubcommands({"command", &CommandCommand, -1, kWithoutStore},
                    "count docs getkeys info list"),
    WithSubcommands({"config", &Config, -2, kAdmin | kWithoutStore}, "get resetstat set"),
    WithSubcommands({"slowlog", &SlowLogCommand, -2, kAdmin | kWithoutStore}, "get len reset"),
    WithSubcommands({"debug", &Debug, -2, kAdmin}, "sleep"),
};

}  // namespace

std::span<const Command> ServerCommands() { return kServerCommands; }

}  // namespace nacre::server
