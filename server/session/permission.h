#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/acl/acl_command.h"
#include "server/acl/acl_selector.h"
#include "server/acl/acl_user.h"
#include "server/session/client.h"
#include "server/session/command.h"

// What users of clients are allowed.

namespace nacre::server {

/// The command as rules know it. `categories` are those that its flags do not tell.
AclCommand AclCommandOf(const Command& command, uint32_t categories);

/// What the call wants to do, which has as many arguments as its command takes.
AclRequest AclRequestOf(const Call& call);

/// Logs the client in; false, with an entry of the log, if the password is wrong.
bool LogIn(Call& call, std::string_view user, std::string_view password);
/// Makes the client what one is that has just connected: the default user, logged in if that needs
/// no password.
void BeAnyone(Client* client, const ServerState& server);

/// The client's user as it is now; null if it is gone.
const AclUser* CurrentUser(Client* client, const ServerState& server);

/// Where a command stands.
enum class CallContext : uint8_t { kTopLevel, kMulti, kScript };

/// Whether the client's user may run the call.
bool IsAllowed(const Call& call);
/// The same: empty, or the error that it is refused with, which the log has then.
std::string Forbidden(const Call& call, CallContext context);

}  // namespace nacre::server
