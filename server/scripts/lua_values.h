#pragma once

#include <string_view>

#include "server/resp/reply.h"

struct lua_State;

// How the answers of commands look to scripts, and what scripts answer to clients: Redis's
// conversions ("Lua API reference").

namespace nacre::server {

/// Pushes an answer of a command, in RESP2 or RESP3: numbers and strings as such, a status as
/// {ok=}, an error as {err=}, what is missing as false (RESP3: nil), an array as a table, and of
/// RESP3 {map=}, {set=}, {double=} and booleans.
void PushReply(lua_State* lua, std::string_view bytes);

/// Pushes {err=message}.
void PushError(lua_State* lua, std::string_view message);

/// Answers the value at the top of the stack. `protocol`: the one that the script has chosen, in
/// which booleans are booleans or 1 and nothing.
void WriteValue(lua_State* lua, int protocol, Reply* reply);

}  // namespace nacre::server
