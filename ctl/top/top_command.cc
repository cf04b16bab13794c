#include "ctl/top/top_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>

#include "ctl/terminal/terminal.h"
#include "ctl/top/pool_sampler.h"
#include "ctl/top/top_json.h"
#include "ctl/top/top_view.h"
#include "util/clock.h"

namespace nacre::ctl {
namespace {

using std::chrono::milliseconds;

/// How often to look for a new sample.
constexpr milliseconds kLook{100};

void ShowOnce(const PoolSample& sample, bool json) {
  if (json) {
    fmt::print("{}", TopJson(sample));
    return;
  }
  for (const TopLine& line : RenderTop(sample, {})) fmt::print("{}\n", line.text);
}

/// What fills the screen, and the keys that change it.
class TopScreen {
 public:
  TopScreen(Terminal* terminal, const PoolSampler* sampler, milliseconds interval, Clock* clock)
      : terminal_(terminal), sampler_(sampler), interval_(interval), clock_(clock) {}

  /// Until it is told to end.
  Status Run() {
    for (;;) {
      NACRE_RETURN_IF_ERROR(Show());
      const Deadline next = Deadline::After(clock_, interval_);
      bool changed = false;
      while (!changed && !next.Expired()) {
        char key = 0;
        const Terminal::Event event = terminal_->Await(std::min(kLook, interval_), &key);
        if (event == Terminal::Event::kEnd) return Status::OK();
        if (event == Terminal::Event::kKey && (key == 'q' || key == 'Q')) return Status::OK();
        if (event == Terminal::Event::kKey && key == 's') order_ = NextOrder(order_);
        changed = event != Terminal::Event::kNone || sampler_->rounds() != shown_rounds_;
      }
    }
  }

 private:
  Status Show() {
    const PoolSample sample = sampler_->Latest();
    shown_rounds_ = sample.rounds;
    const Terminal::Size size = terminal_->size();
    TopFormat format{
        .width = std::max<size_t>(size.width, 2) - 1, .height = size.height, .order = order_};
    format.heading = fmt::format("nacre-ctl top  {:%H:%M:%S} UTC  q quits, s sorts: {}",
                                 fmt::gmtime(std::time(nullptr)), ToString(order_));
    return terminal_->Write(FrameText(RenderTop(sample, format), colored_));
  }

  Terminal* const terminal_;
  const PoolSampler* const sampler_;
  const milliseconds interval_;
  Clock* const clock_;
  const bool colored_ = std::getenv("NO_COLOR") == nullptr;
  TopOrder order_ = TopOrder::kGiven;
  uint64_t shown_rounds_ = 0;
};

}  // namespace

Status Top(const TopOptions& options, const std::function<Status(pool::PoolClient**)>& connect,
           bool* complete) {
  *complete = true;
  const bool once = options.once || options.json || !Terminal::IsThere();
  // Before there are threads, which would take its signals.
  std::unique_ptr<Terminal> terminal;
  if (!once) NACRE_RETURN_IF_ERROR(Terminal::Open(&terminal));
  pool::PoolClient* client = nullptr;
  NACRE_RETURN_IF_ERROR(connect(&client));
  PoolSampler sampler(client, options.interval);
  if (once) {
    const PoolSample sample = sampler.Await(/*rounds=*/2);
    ShowOnce(sample, options.json);
    *complete = sample.pool.complete();
    return Status::OK();
  }
  NACRE_RETURN_IF_ERROR(terminal->Enter());
  const Status shown = TopScreen(terminal.get(), &sampler, options.interval, client->clock()).Run();
  // The sampler may have to wait for nodes before it ends.
  terminal->Leave();
  return shown;
}

}  // namespace nacre::ctl
