#include "server/scripts/lua_engine.h"

#include <fmt/format.h>

#include <lua.hpp>
#include <utility>

#include "server/resp/numbers.h"
#include "server/scripts/lua_prelude.h"
#include "server/scripts/lua_values.h"
#include "server/scripts/script_library.h"

namespace nacre::server {
namespace {

/// A script is interrupted after so many instructions, some milliseconds.
constexpr int kInstructionsOfTurn = 100'000;
/// What was compiled is forgotten when there is more of it.
constexpr size_t kCompiledMax = 1024;
constexpr const char* kChunkName = "@user_script";
constexpr std::string_view kPosition = "user_script:";

std::string_view TextAt(lua_State* lua, int index) {
  size_t size = 0;
  const char* const text = lua_tolstring(lua, index, &size);
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

/// The key of the engine in the registry.
constexpr char kEngineKey = 0;

int Append(lua_State* /*lua*/, const void* bytes, size_t size, void* to) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
  return 0;
}

void PushTexts(lua_State* lua, const std::vector<std::string_view>& texts) {
  lua_createtable(lua, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    lua_pushlstring(lua, texts[i].data(), texts[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

}  // namespace

// Errors of Lua may leave these by longjmp, so nothing in them has a destructor then.
struct LuaEngine::Functions {
  static LuaScript* ScriptOf(lua_State* lua) {
    lua_pushlightuserdata(lua, const_cast<char*>(&kEngineKey));
    lua_rawget(lua, LUA_REGISTRYINDEX);
    auto* const engine = static_cast<LuaEngine*>(lua_touserdata(lua, -1));
    lua_pop(lua, 1);
    const auto script = engine->scripts_.find(lua);
    return script == engine->scripts_.end() ? nullptr : script->second;
  }
  /// A hook, called after so many instructions: the script stops, and goes on when it is resumed.
  static void Interrupt(lua_State* lua, lua_Debug* /*where*/) {
    if (lua_isyieldable(lua) != 0) {
      lua_yield(lua, 0);
      return;
    }
    const LuaScript* const script = ScriptOf(lua);
    const bool ends = script != nullptr && script->must_end_ && script->must_end_();
    if (ends) luaL_error(lua, "the script has to end");
  }
  /// Has the script stop until the command is answered, or returns an error.
  static int RunCommand(lua_State* lua) {
    const int count = lua_gettop(lua);
    if (count == 0) {
      PushError(lua, "ERR Please specify at least one argument for this redis.call() call");
      return 1;
    }
    for (int i = 1; i <= count; ++i) {
      const int type = lua_type(lua, i);
      if (type == LUA_TSTRING || type == LUA_TNUMBER) continue;
      PushError(lua, "ERR Lua redis lib command arguments must be strings or integers");
      return 1;
    }
    if (lua_isyieldable(lua) == 0) {
      PushError(lua, "ERR no command can be called within a callback of string.gsub or table.sort");
      return 1;
    }
    return lua_yield(lua, count);
  }
  static int SetProtocol(lua_State* lua) {
    LuaScript* const script = ScriptOf(lua);
    if (script != nullptr) script->protocol_ = static_cast<int>(lua_tointeger(lua, 1));
    return 0;
  }
  static int Sha1Hex(lua_State* lua) {
    const std::string sha = ScriptLibrary::Sha1(TextAt(lua, 1));
    lua_pushlstring(lua, sha.data(), sha.size());
    return 1;
  }
  /// Text alone: what is compiled could break out.
  static int LoadText(lua_State* lua) {
    const std::string_view text = TextAt(lua, 1);
    const char* const name = lua_tostring(lua, 2);
    if (luaL_loadbufferx(lua, text.data(), text.size(), name == nullptr ? "" : name, "t") == 0) {
      return 1;
    }
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
  }
};

// ---- The engine ---------------------------------------------------------------------------------

LuaEngine::LuaEngine(const std::string& version, uint64_t seed) : lua_(luaL_newstate()) {
  luaL_openlibs(lua_);
  luaJIT_setmode(lua_, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  lua_getglobal(lua_, "math");
  lua_getfield(lua_, -1, "randomseed");
  lua_pushnumber(lua_, static_cast<lua_Number>(seed >> 12));
  lua_call(lua_, 1, 0);
  lua_pop(lua_, 1);

  lua_pushlightuserdata(lua_, const_cast<char*>(&kEngineKey));
  lua_pushlightuserdata(lua_, this);
  lua_rawset(lua_, LUA_REGISTRYINDEX);
  luaL_loadbuffer(lua_, kLuaPrelude, sizeof(kLuaPrelude) - 1, "@prelude");
  for (const lua_CFunction function : {&Functions::RunCommand, &Functions::SetProtocol,
                                       &Functions::Sha1Hex, &Functions::LoadText}) {
    lua_pushcfunction(lua_, function);
  }
  // Debian's lua-cjson, which need not be there.
  lua_getglobal(lua_, "require");
  lua_pushstring(lua_, "cjson");
  if (lua_pcall(lua_, 1, 1, 0) != 0 || lua_type(lua_, -1) != LUA_TTABLE) {
    lua_pop(lua_, 1);
    lua_pushnil(lua_);
  }
  lua_pushstring(lua_, version.c_str());
  lua_call(lua_, 6, 1);
  new_variables_ = luaL_ref(lua_, LUA_REGISTRYINDEX);
  lua_sethook(lua_, &Functions::Interrupt, LUA_MASKCOUNT, kInstructionsOfTurn);
}

LuaEngine::~LuaEngine() { lua_close(lua_); }

std::unique_ptr<LuaScript> LuaEngine::Begin(const std::string& name, std::string_view source,
                                            const std::vector<std::string_view>& keys,
                                            const std::vector<std::string_view>& arguments,
                                            std::string* error) {
  std::unique_ptr<LuaScript> script(new LuaScript(this, name));
  script->thread_ = lua_newthread(lua_);
  script->reference_ = luaL_ref(lua_, LUA_REGISTRYINDEX);
  scripts_[script->thread_] = script.get();
  PushVariables(script->thread_, keys, arguments);
  if (!Load(script->thread_, name, source, error)) return nullptr;
  return script;
}

void LuaEngine::PushVariables(lua_State* thread, const std::vector<std::string_view>& keys,
                              const std::vector<std::string_view>& arguments) {
  lua_rawgeti(thread, LUA_REGISTRYINDEX, new_variables_);
  PushTexts(thread, keys);
  PushTexts(thread, arguments);
  lua_call(thread, 2, 1);
  // What the thread loads, now and with loadstring, has them as its global variables.
  lua_replace(thread, LUA_GLOBALSINDEX);
}

bool LuaEngine::Load(lua_State* thread, const std::string& name, std::string_view source,
                     std::string* error) {
  if (const auto found = compiled_.find(name); found != compiled_.end()) {
    luaL_loadbuffer(thread, found->second.data(), found->second.size(), kChunkName);
    return true;
  }
  if (luaL_loadbufferx(thread, source.data(), source.size(), kChunkName, "t") != 0) {
    *error = fmt::format("ERR Error compiling script (new function): {}", TextAt(thread, -1));
    return false;
  }
  if (compiled_.size() >= kCompiledMax) compiled_.clear();
  lua_dump(thread, &Append, &compiled_[name]);
  return true;
}

// ---- One script ---------------------------------------------------------------------------------

LuaScript::~LuaScript() {
  engine_->scripts_.erase(thread_);
  luaL_unref(engine_->lua_, LUA_REGISTRYINDEX, reference_);
}

LuaScript::Step LuaScript::Resume() {
  const int outcome = lua_resume(thread_, std::exchange(arguments_, 0));
  if (outcome == LUA_YIELD) {
    if (lua_gettop(thread_) == 0) return Step::kPause;
    TakeCommand();
    return Step::kCommand;
  }
  if (outcome == 0) {
    lua_settop(thread_, 1);  // The first of what it returns, or nil.
    return Step::kDone;
  }
  TakeError();
  return Step::kFailed;
}

void LuaScript::TakeCommand() {
  const int count = lua_gettop(thread_);
  command_.clear();
  for (int i = 1; i <= count; ++i) {
    if (lua_type(thread_, i) == LUA_TNUMBER) {
      command_.push_back(FormatDouble(lua_tonumber(thread_, i)));
    } else {
      command_.emplace_back(TextAt(thread_, i));
    }
  }
  lua_settop(thread_, 0);
}

void LuaScript::Answer(std::string_view reply) {
  PushReply(thread_, reply);
  arguments_ = 1;
}

void LuaScript::TakeError() {
  std::string_view message;
  std::string line;
  std::string source = kChunkName;
  lua_checkstack(thread_, 4);
  const int top = lua_gettop(thread_);
  if (lua_type(thread_, top) == LUA_TTABLE) {
    for (const char* const field : {"err", "source", "line"}) {
      lua_pushstring(thread_, field);
      lua_rawget(thread_, top);
    }
    message = TextAt(thread_, top + 1);
    if (lua_type(thread_, top + 2) == LUA_TSTRING) source = TextAt(thread_, top + 2);
    line = TextAt(thread_, top + 3);
    error_ = message.empty() ? "ERR unknown error" : std::string(message);
  } else {
    message = TextAt(thread_, top);
    error_ = fmt::format("ERR {}", message.empty() ? "unknown error" : message);
    if (message.starts_with(kPosition)) {
      const std::string_view rest = message.substr(kPosition.size());
      line = rest.substr(0, rest.find(':'));
    }
  }
  error_ += " script: " + name_;
  if (!line.empty()) error_ += fmt::format(", on {}:{}.", source, line);
}

void LuaScript::WriteResult(Reply* reply) const { WriteValue(thread_, protocol_, reply); }

}  // namespace nacre::server
