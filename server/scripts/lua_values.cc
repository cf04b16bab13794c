#include "server/scripts/lua_values.h"

#include <cstdint>
#include <cstdlib>
#include <lua.hpp>
#include <string>

#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

/// Values that a script answers are nested no deeper; Redis has the same bound for what it pushes.
constexpr int kDepthMax = 100;
/// Slots of the stack that one level takes.
constexpr int kSlotsOfLevel = 6;

/// Reads the bytes of one answer, which the server itself has written, so they are well formed.
class ReplyReader {
 public:
  ReplyReader(lua_State* lua, std::string_view bytes) : lua_(lua), rest_(bytes) {}

  void PushNext() {
    lua_checkstack(lua_, kSlotsOfLevel);  // Answers of commands are nested a few levels deep.
    const std::string_view line = Line();
    const std::string_view text = line.substr(1);
    switch (line[0]) {
      case '+':
        return PushField("ok", text);
      case '-':
        return PushField("err", text);
      case ':':
        return lua_pushnumber(lua_, static_cast<lua_Number>(Number(text)));
      case '$':
        return PushBulk(Number(text));
      case '=':
        return PushVerbatim(Number(text));
      case '*':
      case '>':
        return PushArray(Number(text));
      case '%':
        return PushMap(Number(text));
      case '~':
        return PushSet(Number(text));
      case ',':
        lua_createtable(lua_, 0, 1);
        lua_pushnumber(lua_, std::strtod(std::string(text).c_str(), nullptr));
        return lua_setfield(lua_, -2, "double");
      case '#':
        return lua_pushboolean(lua_, text == "t" ? 1 : 0);
      default:
        return lua_pushnil(lua_);
    }
  }

 private:
  std::string_view Line() {
    const size_t end = rest_.find("\r\n");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    return line;
  }
  std::string_view Bytes(int64_t size) {
    const std::string_view bytes = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(static_cast<size_t>(size) + 2);
    return bytes;
  }
  static int64_t Number(std::string_view text) {
    int64_t value = 0;
    return ParseInteger(text, &value) ? value : 0;
  }
  void PushText(std::string_view text) { lua_pushlstring(lua_, text.data(), text.size()); }
  void PushField(const char* name, std::string_view text) {
    lua_createtable(lua_, 0, 1);
    PushText(text);
    lua_setfield(lua_, -2, name);
  }
  void PushBulk(int64_t size) {
    if (size < 0) return lua_pushboolean(lua_, 0);
    PushText(Bytes(size));
  }
  void PushVerbatim(int64_t size) {
    constexpr size_t kFormat = 3;  // And a colon.
    const std::string_view bytes = Bytes(size);
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, 2);
    PushText(bytes.substr(0, kFormat));
    lua_setfield(lua_, -2, "format");
    PushText(bytes.substr(kFormat + 1));
    lua_setfield(lua_, -2, "string");
    lua_setfield(lua_, -2, "verbatim_string");
  }
  void PushArray(int64_t size) {
    if (size < 0) return lua_pushboolean(lua_, 0);
    lua_createtable(lua_, static_cast<int>(size), 0);
    for (int64_t i = 1; i <= size; ++i) {
      PushNext();
      lua_rawseti(lua_, -2, static_cast<int>(i));
    }
  }
  void PushMap(int64_t pairs) {
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, static_cast<int>(pairs));
    for (int64_t i = 0; i < pairs; ++i) {
      PushNext();
      PushNext();
      lua_rawset(lua_, -3);
    }
    lua_setfield(lua_, -2, "map");
  }
  void PushSet(int64_t size) {
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, static_cast<int>(size));
    for (int64_t i = 0; i < size; ++i) {
      PushNext();
      lua_pushboolean(lua_, 1);
      lua_rawset(lua_, -3);
    }
    lua_setfield(lua_, -2, "set");
  }

  lua_State* const lua_;
  std::string_view rest_;
};

class ValueWriter {
 public:
  ValueWriter(lua_State* lua, int protocol, Reply* reply)
      : lua_(lua), protocol_(protocol), reply_(reply) {}

  /// Writes the value at the top, and pops it.
  void WriteTop(int depth) {
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        reply_->Bulk(TopText());
        break;
      case LUA_TNUMBER:
        reply_->Integer(static_cast<int64_t>(lua_tonumber(lua_, -1)));
        break;
      case LUA_TBOOLEAN:
        WriteBoolean(lua_toboolean(lua_, -1) != 0);
        break;
      case LUA_TTABLE:
        WriteTable(depth);
        break;
      default:
        reply_->Null();
    }
    lua_pop(lua_, 1);
  }

 private:
  std::string_view TopText() {
    size_t size = 0;
    const char* const text = lua_tolstring(lua_, -1, &size);
    return {text, size};
  }
  void WriteBoolean(bool value) {
    if (protocol_ > 2) return reply_->Boolean(value);
    value ? reply_->Integer(1) : reply_->Null();
  }
  /// Pushes the field if it is of that type.
  bool PushField(const char* name, int type) {
    lua_pushstring(lua_, name);
    lua_rawget(lua_, -2);
    if (lua_type(lua_, -1) == type) return true;
    lua_pop(lua_, 1);
    return false;
  }
  void WriteTable(int depth) {
    if (depth >= kDepthMax || lua_checkstack(lua_, kSlotsOfLevel) == 0) {
      return reply_->Error("ERR reached lua stack limit");
    }
    if (PushField("err", LUA_TSTRING)) {
      reply_->Error(TopText());
    } else if (PushField("ok", LUA_TSTRING)) {
      std::string text(TopText());
      for (char& c : text) c = c == '\r' || c == '\n' ? ' ' : c;
      reply_->Simple(text);
    } else if (PushField("double", LUA_TNUMBER)) {
      reply_->Double(lua_tonumber(lua_, -1));
    } else if (PushField("map", LUA_TTABLE)) {
      WriteFields(/*values=*/true, depth);
    } else if (PushField("set", LUA_TTABLE)) {
      WriteFields(/*values=*/false, depth);
    } else if (PushField("verbatim_string", LUA_TTABLE)) {
      std::string_view text;
      const bool has_text = PushField("string", LUA_TSTRING);
      if (has_text) text = TopText();
      reply_->Verbatim(text);
      if (has_text) lua_pop(lua_, 1);
    } else {
      return WriteArray(depth);
    }
    lua_pop(lua_, 1);
  }
  /// Those of the table at the top: a map, or the keys alone, a set.
  void WriteFields(bool values, int depth) {
    size_t count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) ++count;
    values ? reply_->Map(count) : reply_->Set(count);
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pushvalue(lua_, -2);
      WriteTop(depth + 1);
      if (values) {
        WriteTop(depth + 1);
      } else {
        lua_pop(lua_, 1);
      }
    }
  }
  /// As far as there are elements.
  void WriteArray(int depth) {
    size_t count = 0;
    for (;; ++count) {
      lua_rawgeti(lua_, -1, static_cast<int>(count + 1));
      const bool there = lua_type(lua_, -1) != LUA_TNIL;
      lua_pop(lua_, 1);
      if (!there) break;
    }
    reply_->Array(count);
    for (size_t i = 1; i <= count; ++i) {
      lua_rawgeti(lua_, -1, static_cast<int>(i));
      WriteTop(depth + 1);
    }
  }

  lua_State* const lua_;
  const int protocol_;
  Reply* const reply_;
};

}  // namespace

void PushReply(lua_State* lua, std::string_view bytes) { ReplyReader(lua, bytes).PushNext(); }

void PushError(lua_State* lua, std::string_view message) {
  lua_createtable(lua, 0, 1);
  lua_pushlstring(lua, message.data(), message.size());
  lua_setfield(lua, -2, "err");
}

void WriteValue(lua_State* lua, int protocol, Reply* reply) {
  lua_pushvalue(lua, -1);
  ValueWriter(lua, protocol, reply).WriteTop(0);
}

}  // namespace nacre::server
