#include "ctl/read_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "rdma/transport.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

constexpr std::chrono::milliseconds kPeriod{200};

}  // namespace

ReadProgress::ReadProgress(pool::PoolClient* client, const std::string& title, uint64_t total)
    : client_(client),
      title_(title),
      total_(total),
      before_(client->device()->traffic().bytes_read),
      line_(stderr, client->clock(), title, ProgressLine::Plain::kRareTenths) {
  thread_ = Thread("nacre-progress", [this] { Loop(); });
}

ReadProgress::~ReadProgress() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stopped_.Signal();
  }
  thread_.Join();
}

void ReadProgress::Loop() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const uint64_t read = std::min(client_->device()->traffic().bytes_read - before_, total_);
    line_.Show(read, total_, "at most",
               fmt::format("{}: {} of {} at most", title_, FormatBytes(read), FormatBytes(total_)));
    stopped_.WaitFor(kPeriod);
  }
}

}  // namespace nacre::ctl
