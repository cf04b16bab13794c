#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/task.h"
#include "server/resp/reply.h"
#include "server/resp/request_parser.h"
#include "server/session/client.h"
#include "server/store/store.h"
#include "server/store/unit_of_work.h"

namespace nacre::server {

class ServerState;
struct LoopState;

/// What a command does, and what may be done with it; or'ed together.
enum CommandFlags : uint32_t {
  kWrites = 1,
  kReads = 2,           ///< It changes nothing; later commands may begin once it has its locks.
  kNoAuth = 4,          ///< Before AUTH, too.
  kNoMulti = 8,         ///< Not within MULTI.
  kAtOnce = 16,         ///< Within MULTI it is not queued.
  kSubscribed = 32,     ///< Allowed to clients of RESP2 that have subscribed.
  kWholeKeySpace = 64,  ///< Looks at keys that it does not name.
  kAllLocks = 128,      ///< Nothing else may be under way.
  kBlocks = 256,
  kAdmin = 512,
  kFast = 1024,          ///< Its time does not depend on the sizes of values.
  kMetaRowsOnly = 2048,  ///< It reads no rows but the meta rows of the keys that it names.
  kWithoutStore = 4096,  ///< Also of a server that waits for the database.
  kNoScript = 8192,      ///< Not within a script.
  kNotInCluster = 16384,
  kShardChannels = 32768,  ///< The first argument is a sharded channel, or all are.
};

/// One command on its way from its arguments to its answer.
struct Call {
  Request request;
  const Command* command = nullptr;
  Client* client = nullptr;
  LoopState* loop = nullptr;
  ServerState* server = nullptr;
  /// The database that the keys are in. Without a store if there is none, or no keys.
  const StoreAccess* access = nullptr;
  UnitOfWork* unit = nullptr;
  /// All of these belong to commands on all keys: one for each database; a cluster has several.
  std::vector<UnitOfWork*> units;
  Reply reply{2};
  int database = 0;
  bool in_exec = false;
  /// It has waited, and was resumed for this key; or null.
  const std::string* turn = nullptr;
  uint64_t place = 0;    ///< Among those that wait.
  bool answered = true;  ///< CLIENT REPLY may have it otherwise.
  /// Commands behind it may begin once it has its locks.
  bool lets_next_begin = true;
  bool done = false;
  bool elsewhere = false;  ///< It was not run: its keys are another server's.

  /// A command within this one, which is EXEC or runs a script; its words are still to be given.
  Call NewPart() const;
  /// Makes it as new, but for the memory that it has.
  void Reset();

  size_t argc() const { return request.args.size(); }
  std::string_view arg(size_t i) const { return request.args[i]; }
};

/// One command of the protocol.
struct Command {
  const char* name;  ///< In lower case.
  Task<void> (*handler)(Call& call);
  /// How many arguments there are, with the name; if negative, at least so many.
  int arity;
  uint32_t flags;
  /// The first and the last argument that is a key, and the distance from one to the next. A
  /// negative last one counts from the end. 0: there are none, or `keys` names them.
  int first_key = 0;
  int last_key = 0;
  int key_step = 0;
  /// Names keys that are elsewhere. Arguments may be malformed, which the handler will tell.
  void (*keys)(const Call& call, std::vector<KeyRef>* keys) = nullptr;
  /// Whether the command replaces its keys without regard to what they are.
  bool (*replaces)(const Call& call) = nullptr;
  /// Adds locks that the keys do not tell.
  void (*more_locks)(const Call& call, std::vector<SlotLock>* locks) = nullptr;
  /// "get set" of CONFIG: what the first argument may be. Empty: it is no subcommand.
  const char* subcommands = "";
};

/// A command whose first argument is one of `subcommands`.
constexpr Command WithSubcommands(Command command, const char* subcommands) {
  command.subcommands = subcommands;
  return command;
}

/// Appends the keys that the command names.
void AddKeys(const Call& call, std::vector<KeyRef>* keys);
std::vector<KeyRef> KeysOf(const Call& call);
/// Appends the locks that it needs, of which `keys` are the keys.
void AddLocks(const Call& call, const std::vector<KeyRef>& keys, std::vector<SlotLock>* locks);
std::vector<SlotLock> LocksOf(const Call& call);
/// Whether the number of arguments is one that the command takes.
bool TakesArguments(const Command& command, size_t argc);

/// Adds the keys that follow behind their number, which is argument `at`.
void CountedKeys(const Call& call, size_t at, std::vector<KeyRef>* keys);

// ---- What many commands answer
// -------------------------------------------------------------------

inline constexpr const char* kSyntaxError = "ERR syntax error";
inline constexpr const char* kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr const char* kNotInteger = "ERR value is not an integer or out of range";
inline constexpr const char* kNotFloat = "ERR value is not a valid float";
inline constexpr const char* kNoSuchKey = "ERR no such key";
inline constexpr const char* kOutOfRange = "ERR index out of range";

/// Whether one of the arguments from `from` on is `word`, in upper or lower case.
bool HasWord(const Call& call, size_t from, std::string_view word);
/// The argument as a whole number; answers an error and false if it is none.
bool IntegerArgument(Call& call, size_t at, int64_t* value);
bool FloatArgument(Call& call, size_t at, double* value);
void WrongArity(Call& call);
/// "ERR unknown subcommand 'x'. Try CLIENT HELP."; or, if that is what was asked for, HELP's
/// answer.
void UnknownSubcommand(Call& call);

/// Finds a key that has to be of this type or missing. Answers an error and false if it is of
/// another one.
Task<bool> FindOfType(Call& call, std::string_view key, Type type, std::optional<Meta>* meta);

}  // namespace nacre::server
