#pragma once

#include <memory>
#include <string>

#include "metrics/page.h"
#include "nacre/status.h"

namespace nacre::metrics {

/// A share in an address at which this process answers GET /metrics, in Prometheus' text format.
/// All that name the same address share one listener, which ends with the last share. Beside the
/// metrics of its sources a page has `nacre_build_info`, and the exposer's own. The HTTP server has
/// the process ignore SIGPIPE from then on.
///
/// Thread safety: Open may be called from many threads at once; the methods of a share by one.
class Endpoint {
 public:
  /// Listens at `address`, HOST:PORT; port 0 is a free one. (Debian's library knows no IPv6.)
  /// `InvalidArgument` if it is malformed, `IOError` if it cannot be listened at, both naming it.
  static Status Open(const std::string& address, std::unique_ptr<Endpoint>* endpoint);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// With the port that was chosen.
  const std::string& address() const;
  /// Has pages include `source`, until this is called with null or the share ends; both return
  /// when no page is being made of it any more. A share has one source at a time.
  void Show(const Source* source);

 private:
  class Listener;
  struct Addresses;

  Endpoint(std::string key, Listener* listener);

  const std::string key_;  ///< The address as it was named.
  Listener* const listener_;
  const Source* source_ = nullptr;
};

/// `named`, or else what the environment's NACRE_METRICS says; empty: neither says anything.
std::string AddressOr(const std::string& named);

/// Takes a share in that address; null if there is none. What is `named` has to be listened at:
/// fails as Endpoint::Open. What only the environment names is for all processes that have it, of
/// which one gets the address: why this one does not goes to `*left_out`.
Status OpenEndpoint(const std::string& named, std::unique_ptr<Endpoint>* endpoint,
                    Status* left_out);

}  // namespace nacre::metrics
