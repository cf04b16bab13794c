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

/// `*content` begins with all of the file that may be looked at.
Status ReadFile(const std::string& path, const std::shared_ptr<Logger>& logger,
                std::string* content) {
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
  // With room for one byte that is too many.
  constexpr size_t kStep = 4096;
  size_t size = 0;
  while (size <= kMaxSecretFileBytes) {
    content->resize(size + kStep);
    const ssize_t count = ::read(fd.get(), content->data() + size, kStep);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    size += static_cast<size_t>(count);
    if (count == 0) break;
  }
  content->resize(size);
  return Status::OK();
}

Status TakeFromEnvironment(const std::shared_ptr<Logger>& logger, SecretSource* source) {
  if (const char* file = std::getenv(kFileVariable); file != nullptr) {
    source->path = file;
    return ReadSecretFile(file, logger, &source->file).WithContext(kFileVariable);
  }
  const char* const value = std::getenv(kVariable);
  if (value == nullptr) return Status::OK();
  return ParseSecretFile(value, &source->file).WithContext(kVariable);
}

}  // namespace

Status ReadSecretFile(const std::string& path, const std::shared_ptr<Logger>& logger,
                      SecretFile* file) {
  std::string content;
  NACRE_RETURN_IF_ERROR(ReadFile(path, logger, &content));
  return ParseSecretFile(content, file).WithContext(fmt::format("secret file '{}'", path));
}

Status TakeSecrets(Uri* uri, const std::shared_ptr<Logger>& logger, SecretSource* source) {
  *source = {};
  if (const auto file = uri->parameters.extract(kParameter); !file.empty()) {
    source->path = file.mapped();
    return ReadSecretFile(source->path, logger, &source->file);
  }
  return TakeFromEnvironment(logger, source);
}

Status TakeSecret(Uri* uri, const std::shared_ptr<Logger>& logger, std::string* secret) {
  secret->clear();
  SecretSource source;
  NACRE_RETURN_IF_ERROR(TakeSecrets(uri, logger, &source));
  if (!source.file.lines.empty()) *secret = source.file.own().secret;
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
