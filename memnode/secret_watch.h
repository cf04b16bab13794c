#pragma once

#include <sys/stat.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/connect/pool_secret.h"
#include "rdma/secret_ring.h"

namespace nacre::pool {

/// Keeps the secrets and quotas of a running node as its file has them.
///
/// A file that cannot be read, or makes no sense, changes nothing: what was in force stays so, and
/// the log says why. One that was changed is taken when it has not changed between two looks: an
/// editor that writes in place is not to revoke the secrets that it has not come to yet.
///
/// Thread safety: none.
class SecretWatch {
 public:
  using TakeQuotas = std::function<void(std::vector<SecretFile::Quota>)>;

  /// `source`: what is in force, with a path. `log` may be null.
  SecretWatch(const SecretSource& source, std::shared_ptr<rdma::SecretRing> ring,
              TakeQuotas take_quotas, std::shared_ptr<Logger> log);

  /// Once a second or so.
  void Look();
  /// At once, because an operator says that the file is as it is to be.
  void Reload();

 private:
  /// What tells a file that was changed from what it was.
  struct Mark {
    uint64_t device = 0;
    uint64_t file = 0;
    int64_t size = -1;  ///< -1: there is none.
    int64_t modified_seconds = 0;
    int64_t modified_nanos = 0;

    bool operator==(const Mark&) const = default;
  };

  Mark MarkNow() const;
  Status Take();

  const std::string path_;
  const std::shared_ptr<rdma::SecretRing> ring_;
  const TakeQuotas take_quotas_;
  const std::shared_ptr<Logger> log_;
  Mark taken_;  ///< The mark of what was taken last, or could not be.
  Mark seen_;
};

}  // namespace nacre::pool
