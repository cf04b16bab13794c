#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "console/console.h"
#include "ctl/console/pool_console_source.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre::ctl {

/// How `nacre-ctl console` was asked for.
struct ConsoleCommand {
  /// With the token only if a file has none.
  console::ConsoleOptions console;
  std::string token_file;  ///< Empty: none.
  std::string pool_uri;    ///< As databases' options have it.
  std::chrono::milliseconds interval{1000};
};

/// Shows a pool to browsers until SIGINT or SIGTERM, whether its nodes answer or not. `connect`
/// makes a client, which outlives the call, and whose operations take no longer than an interval if
/// what is shown is to be up to date; `examine` is what the doctor does. Failures of `connect`, of
/// reading the token and of listening.
Status ServeConsole(const ConsoleCommand& command,
                    const std::function<Status(pool::PoolClient**)>& connect,
                    const PoolConsoleSource::Examiner& examine);

}  // namespace nacre::ctl
