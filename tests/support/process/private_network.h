#pragma once

#include <cstdint>
#include <string>

namespace nacre {

/// Tests that drop packets run in a network of their own, which has nothing but a loopback and is
/// gone with its last process: a test runs itself once more in such a network, as a process of its
/// own, and so needs no privileges where the system lets users have namespaces.
///
///     switch (EnterPrivateNetwork()) { kInside: the test; else: return, or skip with `why` }
enum class PrivateNetwork : uint8_t {
  kInside,       ///< This process is in one: go on.
  kDone,         ///< The test was run in one, and failed here if it failed there.
  kUnavailable,  ///< The system allows none, or has no nftables: skip.
};

/// For the current test. `*why` becomes what to skip with.
PrivateNetwork EnterPrivateNetwork(std::string* why);

/// Drops the packets that match, from now on, in the private network of this process. Failures fail
/// the test.
class DroppedPackets {
 public:
  enum class Way : uint8_t { kBoth, kToPort, kFromPort };
  /// Those of TCP port `port`.
  DroppedPackets(uint16_t port, Way way);
  /// They pass again.
  ~DroppedPackets();
  DroppedPackets(const DroppedPackets&) = delete;
  DroppedPackets& operator=(const DroppedPackets&) = delete;
};

}  // namespace nacre
