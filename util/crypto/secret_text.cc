#include "util/crypto/secret_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "util/crypto/secret_key.h"

namespace nacre {
namespace {

/// 0, or what the system says.
int ReadSecret(int descriptor, size_t most, std::string* content) {
  content->resize(most + 1);
  size_t size = 0;
  while (size < content->size()) {
    const ssize_t n = ::read(descriptor, content->data() + size, content->size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      WipeSecret(content);
      return error;
    }
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  content->resize(size);
  return 0;
}

}  // namespace

Status ReadSecretText(const std::string& path, size_t most, std::string* content,
                      SecretReaders* readers) {
  content->clear();
  const auto failure = [&path](const char* what, int error) {
    return Status::IOError(path + ": " + what + ": " + std::generic_category().message(error));
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return failure("cannot be opened", errno);
  struct stat about {};
  int error = ::fstat(descriptor, &about) == 0 ? 0 : errno;
  if (error == 0) error = ReadSecret(descriptor, most, content);
  ::close(descriptor);
  if (error != 0) return failure("cannot be read", error);
  *readers = {.group = S_ISREG(about.st_mode) && (about.st_mode & S_IRGRP) != 0,
              .others = S_ISREG(about.st_mode) && (about.st_mode & S_IROTH) != 0};
  return Status::OK();
}

}  // namespace nacre
