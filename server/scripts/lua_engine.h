#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/resp/reply.h"

struct lua_State;

namespace nacre::server {

class LuaEngine;

/// One run of a script. It stops at each command that it asks for, and now and then in between, so
/// that the thread can do other work meanwhile.
///
/// Thread safety: none. Must not outlive its engine.
class LuaScript {
 public:
  enum class Step : uint8_t {
    kCommand,  ///< It asks for command(), and goes on with the Answer.
    kPause,    ///< It has run for long.
    kDone,     ///< WriteResult has what it answers.
    kFailed,   ///< error() has why.
  };

  ~LuaScript();
  LuaScript(const LuaScript&) = delete;
  LuaScript& operator=(const LuaScript&) = delete;

  /// Asked where the script runs for long and cannot be stopped: in a callback of a C function. The
  /// callback fails if it has to end.
  void set_must_end(std::function<bool()> must_end) { must_end_ = std::move(must_end); }
  Step Resume();
  /// In the place of a command's name: the script asks whether it may run the command behind, which
  /// is answered with an integer.
  static constexpr std::string_view kMayRun = "redis.acl_check_cmd";
  /// The words of the command, at least one.
  const std::vector<std::string>& command() const { return command_; }
  /// `reply` is what the command answers, in protocol().
  void Answer(std::string_view reply);
  /// The version of RESP in which the script wants answers, and gives its own.
  int protocol() const { return protocol_; }
  void WriteResult(Reply* reply) const;
  /// With its code in front, and where in the script it was, as Redis has it.
  const std::string& error() const { return error_; }

 private:
  friend class LuaEngine;
  LuaScript(LuaEngine* engine, std::string name) : engine_(engine), name_(std::move(name)) {}
  void TakeCommand();
  void TakeError();

  LuaEngine* const engine_;
  const std::string name_;  ///< For errors.
  lua_State* thread_ = nullptr;
  int reference_ = 0;  ///< To the thread, in the registry.
  int arguments_ = 0;  ///< What the next Resume passes on.
  int protocol_ = 2;
  std::function<bool()> must_end_;
  std::vector<std::string> command_;
  std::string error_;
};

/// An interpreter of Lua 5.1 (LuaJIT's, without its compiler, whose code cannot be interrupted)
/// with what Redis gives scripts, and nothing that reaches out of it. Scripts run in turns, and
/// share no variables.
///
/// Thread safety: none.
class LuaEngine {
 public:
  /// `version`: what scripts are told, such as "7.0.15". `seed` is that of math.random.
  LuaEngine(const std::string& version, uint64_t seed);
  ~LuaEngine();
  LuaEngine(const LuaEngine&) = delete;
  LuaEngine& operator=(const LuaEngine&) = delete;

  /// Null, and `*error`, if the source is no Lua. `name` is that of the script in errors, and
  /// stands for the source: what was compiled is kept by it.
  std::unique_ptr<LuaScript> Begin(const std::string& name, std::string_view source,
                                   const std::vector<std::string_view>& keys,
                                   const std::vector<std::string_view>& arguments,
                                   std::string* error);

 private:
  friend class LuaScript;
  /// What Lua calls.
  struct Functions;

  /// Pushes the script's function to `thread`, whose variables it will use.
  bool Load(lua_State* thread, const std::string& name, std::string_view source,
            std::string* error);
  void PushVariables(lua_State* thread, const std::vector<std::string_view>& keys,
                     const std::vector<std::string_view>& arguments);

  lua_State* lua_;
  int new_variables_ = 0;  ///< What the prelude returns, in the registry.
  std::unordered_map<std::string, std::string> compiled_;
  std::unordered_map<lua_State*, LuaScript*> scripts_;  ///< By their threads.
};

}  // namespace nacre::server
