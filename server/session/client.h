#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/acl/acl_user.h"
#include "server/resp/request_parser.h"

namespace nacre::server {

struct BlockedClient;
struct Call;
struct Command;

/// What WATCH has begun: whether a key that it named was changed since.
struct WatchState {
  struct Key {
    int database = 0;
    std::string key;
    uint64_t expires_at_ms = 0;  ///< As it was found; 0: never, or it was not there.
  };
  std::atomic<bool> changed{false};
  std::vector<Key> keys;
};

/// A command that waits for EXEC.
struct QueuedCommand {
  const Command* command = nullptr;
  Request request;
};

/// The state of one client's connection, apart from its bytes. Lives on one loop.
///
/// Thread safety: code of its loop only.
class Client {
 public:
  virtual ~Client() = default;

  /// The commands behind `call`, which has taken effect as far as they can tell, may begin.
  virtual void LetNextBegin(const Call* call) = 0;
  /// Sends bytes that answer no command, such as a message of a channel.
  virtual void Send(std::string_view bytes) = 0;
  /// Closes once everything that was begun is answered.
  virtual void CloseSoon() = 0;
  /// Closes, whatever is under way.
  virtual void Close() = 0;
  /// The command that waits for a key, if one does.
  BlockedClient* blocked = nullptr;

  uint64_t id = 0;
  std::string address;
  std::string local_address;
  std::string name;
  std::string last_command;
  uint64_t connected_at_ns = 0;
  uint64_t last_seen_ns = 0;
  int protocol = 2;
  int database = 0;
  bool authenticated = false;
  /// What it is logged in as, or would be if it were; see CurrentUser. Null: the user is gone.
  std::shared_ptr<const AclUser> user;
  uint64_t user_version = 0;  ///< The table's when it was looked up.
  bool no_evict = false;
  enum class Origin : uint8_t {
    kDirect,
    kProxied,  ///< It knows no clusters: what is on keys of other servers is run there for it.
    kRelayed,  ///< It is another server's, which has this one run a command.
  };
  Origin origin = Origin::kDirect;
  bool reads_elsewhere = false;  ///< READONLY: keys of other servers may be read here.
  bool replies = true;           ///< CLIENT REPLY OFF ends it.
  bool skips_next = false;       ///< CLIENT REPLY SKIP: the command behind is not answered.
  bool closing = false;
  bool ended = false;  ///< The client sends nothing more, or nothing that can be understood.

  bool in_multi = false;
  bool multi_failed = false;  ///< A command was refused, so EXEC will be.
  std::vector<QueuedCommand> queued;
  std::shared_ptr<WatchState> watch;  ///< Null: nothing is watched.

  std::set<std::string> channels;
  std::set<std::string> patterns;
  std::set<std::string> shard_channels;
  size_t subscriptions() const { return channels.size() + patterns.size() + shard_channels.size(); }
  /// The line of CLIENT LIST.
  std::string Describe(uint64_t now_ns) const;
};

}  // namespace nacre::server
