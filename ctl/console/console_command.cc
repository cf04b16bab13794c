#include "ctl/console/console_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "console/guard.h"
#include "console/key_browser.h"
#include "util/clock.h"

namespace nacre::ctl {

Status ServeConsole(const ConsoleCommand& command,
                    const std::function<Status(pool::PoolClient**)>& connect,
                    const PoolConsoleSource::Examiner& examine) {
  console::ConsoleOptions options = command.console;
  if (!command.token_file.empty()) {
    bool open_to_all = false;
    NACRE_RETURN_IF_ERROR(console::ReadTokenFile(command.token_file, &options.token, &open_to_all)
                              .WithContext("--token_file"));
    if (open_to_all) {
      fmt::print(stderr, "nacre-ctl: other users may read {}; 'chmod 600' it\n",
                 command.token_file);
    }
  }
  // Before any thread begins, so that they come to sigtimedwait.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  pool::PoolClient* client = nullptr;
  NACRE_RETURN_IF_ERROR(connect(&client));
  PoolConsoleSource source(client, command.interval, examine);
  console::KeyBrowser browser(command.pool_uri, client->clock());
  std::unique_ptr<console::Console> console;
  NACRE_RETURN_IF_ERROR(
      console::Console::Open(options, &source, &browser, client->clock(), &console)
          .WithContext("--listen"));
  fmt::print("ready: http://{}/\n", console->address());
  std::fflush(stdout);
  constexpr timespec kSecondOfRest{.tv_sec = 1, .tv_nsec = 0};
  while (::sigtimedwait(&ends, nullptr, &kSecondOfRest) < 0) browser.CloseIdle();
  return Status::OK();
}

}  // namespace nacre::ctl
