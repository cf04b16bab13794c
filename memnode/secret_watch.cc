#include "memnode/secret_watch.h"

#include <utility>

#include "util/log.h"

namespace nacre::pool {

SecretWatch::SecretWatch(const SecretSource& source, std::shared_ptr<rdma::SecretRing> ring,
                         TakeQuotas take_quotas, std::shared_ptr<Logger> log)
    : path_(source.path),
      ring_(std::move(ring)),
      take_quotas_(std::move(take_quotas)),
      log_(std::move(log)) {}

SecretWatch::Mark SecretWatch::MarkNow() const {
  struct stat attributes;
  if (::stat(path_.c_str(), &attributes) != 0) return {};
  return {.device = attributes.st_dev,
          .file = attributes.st_ino,
          .size = attributes.st_size,
          .modified_seconds = attributes.st_mtim.tv_sec,
          .modified_nanos = attributes.st_mtim.tv_nsec};
}

void SecretWatch::Look() {
  const Mark now = MarkNow();
  const bool settled = now == seen_;
  seen_ = now;
  // One that is missing may be on its way, and what was in force stays so.
  if (settled && now != taken_ && now.size >= 0) Reload();
}

void SecretWatch::Reload() {
  // Before it is read: a change meanwhile is found by the next look.
  taken_ = MarkNow();
  seen_ = taken_;
  if (const Status status = Take(); !status.ok()) {
    Log(log_, LogLevel::kError, "the secrets stay as they were: {}", status.ToString());
  }
}

Status SecretWatch::Take() {
  SecretFile file;
  NACRE_RETURN_IF_ERROR(ReadSecretFile(path_, log_, &file));
  NACRE_RETURN_IF_ERROR(ring_->Replace(file.Terms()));
  Log(log_, LogLevel::kInfo, "secret file '{}': {} secrets and {} quotas are in force", path_,
      file.lines.size(), file.quotas.size());
  take_quotas_(std::move(file.quotas));
  return Status::OK();
}

}  // namespace nacre::pool
