#pragma once

#include <memory>
#include <string>
#include <vector>

#include "console/console_source.h"
#include "console/key_browser.h"
#include "nacre/status.h"
#include "util/clock.h"

namespace nacre::console {

struct ConsoleOptions {
  std::string listen = "127.0.0.1:8080";  ///< HOST:PORT; port 0: any that is free.
  /// Asked of each browser; empty: of none, which only an address of this machine's own may do.
  std::string token{};
  /// Names under which browsers may ask for the console, beside IP addresses and "localhost".
  std::vector<std::string> hosts{};
  bool allow_orders = false;  ///< Otherwise nothing can be changed by it.
};

/// A page by which browsers look at a pool, and what it asks for: GET / has the page, and
///
///     GET  /api/pool[?after=N]   the last sample; 204 if there is none after the N-th
///     GET  /api/history          figures over time
///     GET  /api/levels           levels of the databases
///     GET  /api/doctor           what stands between this machine and the pool
///     GET  /api/keys?database=D[&family=F][&prefix=HEX][&from=HEX][&limit=N]
///     POST /api/orders           order=drain|undrain|pause-repair|resume-repair[&node=ADDRESS]
///     POST /login                token=TOKEN, which sets a cookie
///
/// Answers below /api/ are JSON; failures are {"error": TEXT}, with a status of HTTP that fits.
///
/// Thread safety: it is constant once it is open.
class Console {
 public:
  virtual ~Console() = default;

  /// Listens from here on, by threads of its own. `source`, `browser` and `clock` outlive it.
  /// `InvalidArgument` if the options make no sense, above all without a token at an address that
  /// other machines reach; `IOError` if it cannot be listened there. Both name the address.
  static Status Open(const ConsoleOptions& options, ConsoleSource* source, KeyBrowser* browser,
                     Clock* clock, std::unique_ptr<Console>* console);

  /// HOST:PORT with the port that was chosen.
  virtual const std::string& address() const = 0;
};

}  // namespace nacre::console
