#pragma once

#include <chrono>
#include <functional>

#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre::ctl {

/// How `nacre-ctl top` was asked for.
struct TopOptions {
  std::chrono::milliseconds interval{1000};
  bool once = false;  ///< One plain sample; so it is where standard output is no terminal.
  bool json = false;  ///< The same as JSON.
};

/// Shows a pool on the terminal until it is told to end, by a key or a signal, or on standard
/// output once: what its nodes tell twice, an interval apart. Nodes that do not answer are shown as
/// such and asked again. `connect` makes a client, which outlives the call, and whose operations
/// take no longer than an interval if the screen is to be up to date. `*complete`: all nodes
/// answered; always true of a terminal. Failures of `connect`; `IOError` if the terminal is gone.
Status Top(const TopOptions& options, const std::function<Status(pool::PoolClient**)>& connect,
           bool* complete);

}  // namespace nacre::ctl
