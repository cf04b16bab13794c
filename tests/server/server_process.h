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
    const std::string output = process_->AwaitOutput(" at 127.0.0.1:", kPatienceSeconds);
    const size_t at = output.rfind(" at ");
    EXPECT_NE(at, std::string::npos) << output;
    if (at == std::string::npos) return;
    address_ = output.substr(at + 4);
    if (address_.find('\n') == std::string::npos) {
      address_ += process_->AwaitOutput("\n", kPatienceSeconds);
    }
    address_.resize(address_.find('\n'));
  }

  const std::string& address() const { return address_; }
  ChildProcess& process() { return *process_; }

 private:
  std::unique_ptr<ChildProcess> process_;
  std::string address_;
};

}  // namespace nacre::server
