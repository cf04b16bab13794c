#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/memnode_process.h"

namespace nacre::server {

inline constexpr int kPatienceSeconds = 60;

/// nacre-server as a process of its own, at a free port.
class ServerProcess {
 public:
  explicit ServerProcess(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = flags;
    arguments.emplace_back("--listen=127.0.0.1:0");
    process_ = std::make_unique<ChildProcess>("nacre-server", arguments);
    std::string output = process_->AwaitOutput(" at 127.0.0.1:", kPatienceSeconds);
    if (!output.ends_with('\n')) output += process_->AwaitOutput("\n", kPatienceSeconds);
    address_ = AddressBehind(" at ", output);
    proxy_address_ = AddressBehind(", forwarding at ", output);
    EXPECT_FALSE(address_.empty()) << output;
  }

  const std::string& address() const { return address_; }
  /// Where --proxy_listen has it listen; empty without that.
  const std::string& proxy_address() const { return proxy_address_; }
  ChildProcess& process() { return *process_; }

 private:
  static std::string AddressBehind(const std::string& words, const std::string& output) {
    const size_t at = output.find(words);
    if (at == std::string::npos) return "";
    const size_t begin = at + words.size();
    return output.substr(begin, output.find_first_of(",\n", begin) - begin);
  }

  std::unique_ptr<ChildProcess> process_;
  std::string address_;
  std::string proxy_address_;
};

}  // namespace nacre::server
