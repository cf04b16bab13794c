#pragma once

#include <cstdint>
#include <string>

#include "ctl/terminal/progress_line.h"
#include "pool/pool_client.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::ctl {

/// Shows on standard error, as long as it lives, how much of the nodes' memory this client has read
/// since: for what reads much of it and does not tell how far it is.
///
/// Thread safety: none.
class ReadProgress {
 public:
  /// `total`: the bytes that will be read at most. `client` outlives this.
  ReadProgress(pool::PoolClient* client, const std::string& title, uint64_t total);
  ~ReadProgress();
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

 private:
  void Loop();

  pool::PoolClient* const client_;
  const std::string title_;
  const uint64_t total_;
  const uint64_t before_;  ///< Bytes that had been read.
  ProgressLine line_;      ///< Used by the thread only.
  Mutex mutex_;
  CondVar stopped_{&mutex_};
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace nacre::ctl
