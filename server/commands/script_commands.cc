#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/scripts/lua_engine.h"
#include "server/scripts/script_library.h"
#include "server/session/key_events.h"
#include "server/session/permission.h"
#include "server/session/routing.h"
#include "server/session/server_state.h"

// EVAL and EVALSHA, which run scripts, and SCRIPT. A script has one unit of work, as EXEC has: what
// it changes becomes visible at once, when it ends. It holds the locks of the keys that it
// declares. One that names others begins anew with all locks, under which nothing else runs.

namespace nacre::server {
namespace {

using Script = ScriptLibrary::Script;

constexpr size_t kScript = 1;    // Where EVAL has the script, or its SHA-1,
constexpr size_t kKeyCount = 2;  // and how many keys follow.
constexpr size_t kFirstKey = 3;

bool ByName(const Call& call) {
  return std::string_view(call.command->name).starts_with("evalsha");
}

bool ReadsOnly(const Call& call) { return (call.command->flags & kWrites) == 0; }

void DeclaredKeys(const Call& call, std::vector<KeyRef>* keys) {
  CountedKeys(call, kKeyCount, keys);
}

void MoreLocks(const Call& call, std::vector<SlotLock>* locks) {
  // The unit of EXEC cannot begin anew.
  bool all = call.in_exec;
  if (!all && call.argc() > kScript && call.server->scripts.any_names_other_keys()) {
    const std::string sha =
        ByName(call) ? std::string(call.arg(kScript)) : ScriptLibrary::Sha1(call.arg(kScript));
    const std::shared_ptr<Script> script = call.server->scripts.Find(sha);
    all = script != nullptr && script->names_other_keys.load(std::memory_order_relaxed);
  }
  if (all) *locks = LockTable::All();
}

LuaEngine& EngineOf(const Call& call) {
  std::unique_ptr<LuaEngine>& engine = call.loop->lua;
  if (engine == nullptr) {
    engine = std::make_unique<LuaEngine>(kRedisVersion, call.loop->random.Next());
  }
  return *engine;
}

/// One EVAL.
class ScriptRun {
 public:
  ScriptRun(Call* call, std::shared_ptr<Script> script)
      : call_(*call), script_(std::move(script)), running_(&call->server->scripts) {}

  /// Cuts the arguments into keys and others. Answers an error and false if that cannot be.
  bool TakeArguments() {
    if (!script_->error.empty()) {
      call_.reply.Error(script_->error);
      return false;
    }
    int64_t keys = 0;
    if (!IntegerArgument(call_, kKeyCount, &keys)) return false;
    if (keys < 0) {
      call_.reply.Error("ERR Number of keys can't be negative");
      return false;
    }
    if (static_cast<uint64_t>(keys) > call_.argc() - kFirstKey) {
      call_.reply.Error("ERR Number of keys can't be greater than number of args");
      return false;
    }
    for (size_t i = kFirstKey; i < call_.argc(); ++i) {
      (i < kFirstKey + static_cast<size_t>(keys) ? keys_ : arguments_).push_back(call_.arg(i));
    }
    return true;
  }

  Task<void> Run() {
    for (;;) {
      const bool whole = co_await RunOnce();
      if (whole) co_return;
      call_.unit->Discard();
      call_.unit->Unlock();
      co_await call_.unit->Lock(LockTable::All());
    }
  }

 private:
  /// False: it has named a key that is not locked, and has to begin anew.
  Task<bool> RunOnce() {
    std::string error;
    const std::unique_ptr<LuaScript> lua =
        EngineOf(call_).Begin(script_->sha, script_->source, keys_, arguments_, &error);
    if (lua == nullptr) {
      call_.reply.Error(error);
      co_return true;
    }
    lua->set_must_end([this] { return running_.cut_off() || running_.killed(); });
    const int database_before = call_.client->database;  // A script selects for itself.
    const bool whole = co_await Follow(lua.get());
    call_.client->database = database_before;
    co_return whole;
  }

  Task<bool> Follow(LuaScript* lua) {
    for (size_t turns = 1;; ++turns) {
      const LuaScript::Step step = lua->Resume();
      if (step == LuaScript::Step::kDone) {
        lua->WriteResult(&call_.reply);
        co_return true;
      }
      if (step == LuaScript::Step::kFailed) {
        call_.reply.Error(lua->error());
        co_return true;
      }
      if (step == LuaScript::Step::kCommand) {
        const bool locked = co_await RunCommand(lua);
        if (!locked) co_return false;
        if (call_.unit->changed()) running_.SetWrote();
      }
      if (step == LuaScript::Step::kPause || turns % Yield::kTasksMax == 0) {
        co_await Yield(&call_.loop->loop);
      }
      if (running_.cut_off()) {
        call_.unit->Fail(Status::Aborted("the server ends"));
        co_return true;
      }
      if (running_.killed()) {
        call_.reply.Error("ERR Error running script: Script killed by user with SCRIPT KILL.");
        co_return true;
      }
    }
  }

  /// Runs what the script asks for. False as RunOnce.
  Task<bool> RunCommand(LuaScript* lua) {
    Call part = call_.NewPart();
    for (const std::string& word : lua->command()) part.request.args.push_back(word);
    part.command = call_.server->FindCommand(part.arg(0));
    part.reply.set_protocol(lua->protocol());
    if (part.arg(0) == LuaScript::kMayRun) {
      AnswerWhetherAllowed(&part);
    } else if (const std::string refusal = RefusalOf(part); !refusal.empty()) {
      part.reply.Error(refusal);
    } else {
      for (const SlotLock& lock : LocksOf(part)) {
        if (call_.unit->Holds(lock)) continue;
        call_.server->scripts.NoteOtherKeys(script_.get());
        co_return false;
      }
      const KeyEventScope scope(&part);
      co_await part.command->handler(part);
    }
    lua->Answer(part.reply.bytes());
    co_return true;
  }

  /// The command is behind the first word.
  void AnswerWhetherAllowed(Call* part) const {
    std::vector<std::string_view>& words = part->request.args;
    words.erase(words.begin());
    part->command = words.empty() ? nullptr : call_.server->FindCommand(words[0]);
    if (part->command == nullptr || !TakesArguments(*part->command, part->argc())) {
      part->reply.Error("ERR Invalid command passed to redis.acl_check_cmd()");
    } else {
      part->reply.Integer(IsAllowed(*part) ? 1 : 0);
    }
  }

  /// Why the script may not run it; or empty.
  std::string RefusalOf(const Call& part) const {
    if (part.command == nullptr) return "ERR Unknown Redis command called from script";
    if (!TakesArguments(*part.command, part.argc())) {
      return "ERR Wrong number of args calling Redis command from script";
    }
    constexpr uint32_t kNever = kNoScript | kNoAuth | kNoMulti | kAtOnce | kAdmin | kBlocks;
    if ((part.command->flags & kNever) != 0) {
      return "ERR This Redis command is not allowed from script";
    }
    if ((ReadsOnly(call_) || script_->reads_only) && (part.command->flags & kWrites) != 0) {
      return "ERR Write commands are not allowed from read-only scripts.";
    }
    if (!HasKeysOf(call_, part)) {
      return "ERR Script attempted to access keys that are not in the slots of its own";
    }
    return Forbidden(part, CallContext::kScript);
  }

  Call& call_;
  const std::shared_ptr<Script> script_;
  ScriptLibrary::Run running_;
  std::vector<std::string_view> keys_;
  std::vector<std::string_view> arguments_;
};

/// EVAL, EVALSHA and those that only read.
Task<void> Eval(Call& call) {
  std::shared_ptr<Script> script = ByName(call) ? call.server->scripts.Find(call.arg(kScript))
                                                : call.server->scripts.Add(call.arg(kScript));
  if (script == nullptr) {
    call.reply.Error("NOSCRIPT No matching script. Please use EVAL.");
    co_return;
  }
  ScriptRun run(&call, std::move(script));
  if (run.TakeArguments()) co_await run.Run();
}

void LoadScript(Call& call) {
  const std::shared_ptr<Script> script = call.server->scripts.Add(call.arg(2));
  std::string error = script->error;
  if (error.empty()) EngineOf(call).Begin(script->sha, script->source, {}, {}, &error);
  if (!error.empty()) {
    call.reply.Error(error);
    return;
  }
  call.reply.Bulk(script->sha);
}

void KillScripts(Call& call) {
  switch (call.server->scripts.Kill()) {
    case ScriptLibrary::Killed::kNoneRuns:
      return call.reply.Error("NOTBUSY No scripts in execution right now.");
    case ScriptLibrary::Killed::kHasWritten:
      return call.reply.Error(
          "UNKILLABLE Sorry the script already executed write commands against the dataset.");
    case ScriptLibrary::Killed::kKilled:
      return call.reply.Ok();
  }
}

Task<void> ScriptCommand(Call& call) {
  const std::string_view what = call.arg(1);
  const size_t argc = call.argc();
  if (SameWord(what, "LOAD") && argc == 3) {
    LoadScript(call);
  } else if (SameWord(what, "EXISTS") && argc >= 3) {
    call.reply.Array(argc - 2);
    for (size_t i = 2; i < argc; ++i) {
      call.reply.Integer(call.server->scripts.Find(call.arg(i)) != nullptr ? 1 : 0);
    }
  } else if (SameWord(what, "FLUSH") && argc <= 3) {
    if (argc == 3 && !SameWord(call.arg(2), "ASYNC") && !SameWord(call.arg(2), "SYNC")) {
      call.reply.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    } else {
      call.server->scripts.Clear();
      call.reply.Ok();
    }
  } else if (SameWord(what, "KILL") && argc == 2) {
    KillScripts(call);
  } else {
    UnknownSubcommand(call);
  }
  co_return;
}

constexpr Command kScriptCommands[] = {
    {"eval", &Eval, -3, kWrites | kNoScript, 0, 0, 0, &DeclaredKeys, nullptr, &MoreLocks},
    {"evalsha", &Eval, -3, kWrites | kNoScript, 0, 0, 0, &DeclaredKeys, nullptr, &MoreLocks},
    {"eval_ro", &Eval, -3, kNoScript, 0, 0, 0, &DeclaredKeys, nullptr, &MoreLocks},
    {"evalsha_ro", &Eval, -3, kNoScript, 0, 0, 0, &DeclaredKeys, nullptr, &MoreLocks},
    WithSubcommands({"script", &ScriptCommand, -2, kNoScript}, "exists flush kill load"),
};

}  // namespace

std::span<const Command> ScriptCommands() { return kScriptCommands; }

}  // namespace nacre::server
