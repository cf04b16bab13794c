#include "pool/connect/pool_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "rdma/unique_fd.h"
#include "util/log.h"

namespace nacre::pool {
namespace {

constexpr char kParameter[] = "secret_file";
constexpr char kFileVariable[] = "NACRE_SECRET_FILE";
constexpr char kVariable[] = "NACRE_SECRET";

Status Check(const std::string& source, std::string* secret) {
  if (secret->ends_with('\n')) secret->pop_back();
  if (secret->ends_with('\r')) secret->pop_back();
  if (secret->empty()) return Status::InvalidArgument(source + ": the secret is empty");
  if (secret->size() <= kMaxSecretBytes) return Status::OK();
  return Status::InvalidArgument(
      fmt::format("{}: the secret is longer than {} bytes", source, kMaxSecretBytes));
}

Status ReadSecret(const std::string& path, const std::shared_ptr<Logger>& logger,
                  std::string* secret) {
  const auto failed = [&] {
    return Status::IOError(fmt::format("secret file '{}': {}", path, std::strerror(errno)));
  };
  const rdma::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat attributes;
  if (!fd.valid() || ::fstat(fd.get(), &attributes) != 0) return failed();
  if (S_ISREG(attributes.st_mode) && (attributes.st_mode & S_IROTH) != 0) {
    Log(logger, LogLevel::kWarn,
        "secret file '{}': everybody on this machine may read it; chmod 600 it", path);
  }
  // With room for a line's end, and for one byte that is too many.
  secret->resize(kMaxSecretBytes + 3);
  size_t size = 0;
  while (size < secret->size()) {
    const ssize_t count = ::read(fd.get(), secret->data() + size, secret->size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  secret->resize(size);
  return Check(fmt::format("secret file '{}'", path), secret);
}

}  // namespace

Status TakeSecret(Uri* uri, const std::shared_ptr<Logger>& logger, std::string* secret) {
  secret->clear();
  if (const auto file = uri->parameters.extract(kParameter); !file.empty()) {
    return ReadSecret(file.mapped(), logger, secret);
  }
  if (const char* file = std::getenv(kFileVariable); file != nullptr) {
    return ReadSecret(file, logger, secret).WithContext(kFileVariable);
  }
  if (const char* value = std::getenv(kVariable); value != nullptr) {
    *secret = value;
    return Check(kVariable, secret);
  }
  return Status::OK();
}

std::string RemedyFor(const Status& status) {
  if (!status.IsUnavailable() || status.message().find("secret") == std::string_view::npos) {
    return "";
  }
  return fmt::format(
      "give the secret that the node was started with: '?{}=PATH' after the addresses, {}=PATH or "
      "{} in the environment",
      kParameter, kFileVariable, kVariable);
}

}  // namespace nacre::pool
