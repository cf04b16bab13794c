#include "pool/connect/pool_secret.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "util/crypto/secret_key.h"
#include "util/crypto/secret_text.h"
#include "util/log.h"

namespace nacre::pool {
namespace {

constexpr char kParameter[] = "secret_file";
constexpr char kFileVariable[] = "NACRE_SECRET_FILE";
constexpr char kVariable[] = "NACRE_SECRET";

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
  SecretReaders readers;
  NACRE_RETURN_IF_ERROR(
      ReadSecretText(path, kMaxSecretFileBytes, &content, &readers).WithContext("secret file"));
  if (readers.others) {
    Log(logger, LogLevel::kWarn,
        "secret file '{}': everybody on this machine may read it; chmod 600 it", path);
  }
  Status status = ParseSecretFile(content, file).WithContext(fmt::format("secret file '{}'", path));
  WipeSecret(&content);
  return status;
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
