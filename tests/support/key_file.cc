#include "tests/support/key_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace nacre {

std::string TestKey(const std::string& id) {
  std::string digits;
  unsigned state = 1;
  for (size_t i = 0; i < 64; ++i) {
    state = state * 31 + static_cast<unsigned char>(id[i % id.size()]);
    digits += "0123456789abcdef"[state / 7 % 16];
  }
  return digits;
}

namespace {

std::string KeyFileContent(const std::vector<std::string>& ids) {
  std::string content = "# keys of a test\n";
  for (const std::string& id : ids) content += id + " " + TestKey(id) + "\n";
  return content;
}

}  // namespace

void WriteKeyFile(const std::string& path, const std::vector<std::string>& ids) {
  // As an operator would: a reader sees the old file or the new one.
  const std::string first = path + ".new";
  std::ofstream file(first, std::ios::trunc);
  file << KeyFileContent(ids);
  file.close();
  EXPECT_TRUE(file.good()) << first;
  EXPECT_EQ(::chmod(first.c_str(), 0600), 0);
  EXPECT_EQ(::rename(first.c_str(), path.c_str()), 0);
}

std::string KeyFileInMemory(const std::vector<std::string>& ids) {
  const int descriptor = ::memfd_create("keys", MFD_CLOEXEC);
  const std::string content = KeyFileContent(ids);
  EXPECT_EQ(::write(descriptor, content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  EXPECT_EQ(::fchmod(descriptor, 0600), 0);
  return "/proc/self/fd/" + std::to_string(descriptor);
}

}  // namespace nacre
