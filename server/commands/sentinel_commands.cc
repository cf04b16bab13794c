// SENTINEL and ROLE: which server has the database. Each server answers as one of Redis's
// sentinels would, so that stock clients find the one that serves, and the next one after it.

#include <string>
#include <utility>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

using Fields = std::vector<std::pair<const char*, std::string>>;

/// False, with the answer, if it is not what clients call the database.
bool IsMaster(Call& call, std::string_view name) {
  if (name == call.server->master.name) return true;
  call.reply.Error("ERR No such master with that name");
  return false;
}

void DescribeMaster(Call& call) {
  const auto [host, port] = Master::Divide(call.server->master.address());
  const Fields fields = {
      {"name", call.server->master.name},
      {"ip", host},
      {"port", port},
      {"runid", call.server->serving(*call.loop) ? call.server->run_id : std::string()},
      {"flags", "master"},
      {"link-pending-commands", "0"},
      {"last-ping-sent", "0"},
      {"last-ok-ping-reply", "0"},
      {"last-ping-reply", "0"},
      {"down-after-milliseconds", "0"},
      {"role-reported", "master"},
      {"num-slaves", "0"},
      {"num-other-sentinels", "0"},
      {"quorum", "1"},
  };
  call.reply.Map(fields.size());
  for (const auto& [field, value] : fields) {
    call.reply.Bulk(field);
    call.reply.Bulk(value);
  }
}

Task<void> Sentinel(Call& call) {
  const std::string_view what = call.arg(1);
  const std::string address = call.server->master.address();
  if (SameWord(what, "GET-MASTER-ADDR-BY-NAME") && call.argc() == 3) {
    if (address.empty() || call.arg(2) != call.server->master.name) {
      call.reply.NullArray();
    } else {
      const auto [host, port] = Master::Divide(address);
      call.reply.Array(2);
      call.reply.Bulk(host);
      call.reply.Bulk(port);
    }
  } else if (SameWord(what, "MASTERS") && call.argc() == 2) {
    call.reply.Array(address.empty() ? 0 : 1);
    if (!address.empty()) DescribeMaster(call);
  } else if (SameWord(what, "MASTER") && call.argc() == 3) {
    if (IsMaster(call, call.arg(2))) DescribeMaster(call);
  } else if ((SameWord(what, "REPLICAS") || SameWord(what, "SLAVES") ||
              SameWord(what, "SENTINELS")) &&
             call.argc() == 3) {
    // Those that wait serve nothing, and clients know the servers that they ask.
    if (IsMaster(call, call.arg(2))) call.reply.Array(0);
  } else if (SameWord(what, "MYID") && call.argc() == 2) {
    call.reply.Bulk(call.server->run_id);
  } else {
    UnknownSubcommand(call);
  }
  co_return;
}

Task<void> Role(Call& call) {
  if (call.server->serving(*call.loop)) {
    call.reply.Array(3);
    call.reply.Bulk("master");
    call.reply.Integer(0);
    call.reply.Array(0);
    co_return;
  }
  const auto [host, port] = Master::Divide(call.server->master.address());
  call.reply.Array(5);
  call.reply.Bulk("slave");
  call.reply.Bulk(host);
  call.reply.Integer(std::stoi(port));
  call.reply.Bulk("connect");
  call.reply.Integer(0);
}

constexpr Command kSentinelCommands[] = {
    WithSubcommands({"sentinel", &Sentinel, -2, kAdmin | kWithoutStore},
                    "get-master-addr-by-name master masters myid replicas sentinels slaves"),
    {"role", &Role, 1, kFast | kWithoutStore},
};

}  // namespace

std::span<const Command> SentinelCommands() { return kSentinelCommands; }

}  // namespace nacre::server
