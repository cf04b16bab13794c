#pragma once

#include <map>
#include <string>
#include <vector>

namespace nacre::rdma {

/// One thing that makes people give up, looked at.
struct Finding {
  enum class Verdict : char { kOk, kWarning, kFailure };

  Verdict verdict = Verdict::kOk;
  std::string subject;  ///< "locked memory"
  std::string found;    ///< "64 KiB"
  std::string remedy;   ///< What to do about a failed check, as a command where possible.
};

/// Checks what matters on this machine to the transport `scheme`: limits, huge pages, and for
/// `verbs` the device, its port, MTU and GIDs, and how much memory it registers at once (which
/// takes a second). `parameters` are those of the pool's URI, `peers` the nodes' addresses
/// ("HOST:PORT"), for the route that requests to them would take. It changes nothing and connects
/// to no peer.
std::vector<Finding> Diagnose(const std::string& scheme,
                              const std::map<std::string, std::string>& parameters,
                              const std::vector<std::string>& peers);

}  // namespace nacre::rdma
