#pragma once

namespace nacre::server {

/// What scripts find, made once for each LuaEngine from the whole of Lua's libraries and C
/// functions of the engine. Returns a function that makes the variables of one script. Scripts
/// share everything else, so it cannot be changed.
inline constexpr char kLuaPrelude[] = R"lua(
local run_command, set_protocol, sha1hex, load_text, json, version = ...
local getinfo, error, type, tostring = debug.getinfo, error, type, tostring
local getmetatable, setmetatable, rawset = getmetatable, setmetatable, rawset

local read_only = setmetatable({}, {__mode = 'k'})
local function refuse() error('Attempt to modify a readonly table', 2) end
local function protect(t)
  local shown = setmetatable({}, {__index = t, __newindex = refuse, __metatable = false})
  read_only[shown] = true
  return shown
end
local nothing = protect({})

local major, minor, patch = version:match('(%d+)%.(%d+)%.(%d+)')
local redis = {
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = version, REDIS_VERSION_NUM = major * 65536 + minor * 256 + patch,
  pcall = run_command,
}
function redis.call(...)
  local reply = run_command(...)
  if type(reply) == 'table' and reply.err ~= nil then
    local caller = getinfo(2, 'Sl')
    if caller and caller.currentline >= 0 then
      reply.source, reply.line = caller.source, caller.currentline
    end
    error(reply, 0)
  end
  return reply
end
function redis.acl_check_cmd(...)
  local reply = run_command('redis.acl_check_cmd', ...)
  if type(reply) == 'table' then error(reply, 0) end
  return reply == 1
end
function redis.sha1hex(...)
  if select('#', ...) ~= 1 then error('wrong number of arguments', 2) end
  return sha1hex(tostring((...)))
end
function redis.status_reply(text)
  if type(text) ~= 'string' then return {err = 'ERR wrong number or type of arguments'} end
  return {ok = text}
end
function redis.error_reply(text)
  if type(text) ~= 'string' then return {err = 'ERR wrong number or type of arguments'} end
  if text:sub(1, 1) == '-' then text = text:sub(2) end
  if not text:find(' ', 1, true) then text = 'ERR ' .. text end
  return {err = text}
end
function redis.setresp(protocol)
  if protocol ~= 2 and protocol ~= 3 then error('RESP version must be 2 or 3.', 2) end
  set_protocol(protocol)
end
-- What a script changes is one write, so there is nothing to choose.
function redis.set_repl() end
function redis.replicate_commands() return true end
function redis.log(level, ...)
  if select('#', ...) == 0 then error('redis.log() requires two arguments or more.', 2) end
  if type(level) ~= 'number' then error('First argument must be a number (log level).', 2) end
  if level < 0 or level > 3 then error('Invalid debug level.', 2) end
end
function redis.breakpoint() return false end
function redis.debug() end

string.dump = nil
getmetatable('').__metatable = false
local function load_script(text, name)
  if type(text) == 'function' then
    local parts = {}
    for part in text do
      if part == '' then break end
      parts[#parts + 1] = part
    end
    text = table.concat(parts)
  end
  return load_text(text, name or text)
end

local globals = {
  assert = assert, error = error, ipairs = ipairs,
  load = load_script, loadstring = load_script, next = next, pairs = pairs, pcall = pcall,
  rawequal = rawequal, rawget = rawget, select = select, tonumber = tonumber, tostring = tostring,
  type = type, unpack = unpack, xpcall = xpcall, _VERSION = _VERSION,
  collectgarbage = function(what) return what == 'count' and collectgarbage('count') or 0 end,
  getmetatable = function(t)
    if read_only[t] then return nothing end
    return getmetatable(t)
  end,
  setmetatable = function(t, meta)
    if read_only[t] then refuse() end
    return setmetatable(t, meta)
  end,
  rawset = function(t, name, value)
    if read_only[t] then refuse() end
    return rawset(t, name, value)
  end,
  bit = protect(bit), cjson = json and protect(json), math = protect(math),
  os = protect({clock = os.clock}), redis = protect(redis), string = protect(string),
  table = protect(table),
}
globals._G = protect(globals)
setmetatable(globals, {__index = function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end})
local of_script = {__index = globals, __newindex = refuse, __metatable = false}

return function(keys, arguments)
  local variables = setmetatable({KEYS = keys, ARGV = arguments}, of_script)
  read_only[variables] = true
  return variables
end
)lua";

}  // namespace nacre::server
