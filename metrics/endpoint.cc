#include "metrics/endpoint.h"

#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "nacre/version.h"
#include "util/exceptions.h"
#include "util/mutex.h"
#include "util/never_destroyed.h"
#include "util/uri.h"

namespace nacre::metrics {
namespace {

prometheus::ClientMetric Convert(const Labels& labels, const Page::Sample& sample, Kind kind) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : labels) {
    metric.label.push_back({.name = name, .value = AsLabel(value)});
  }
  switch (kind) {
    case Kind::kGauge:
      metric.gauge.value = sample.value;
      break;
    case Kind::kCounter:
      metric.counter.value = sample.value;
      break;
    case Kind::kHistogram:
      metric.histogram.sample_count = sample.count;
      metric.histogram.sample_sum = sample.value;
      for (const Page::Bucket& bucket : sample.buckets) {
        metric.histogram.bucket.push_back(
            {.cumulative_count = bucket.count, .upper_bound = bucket.upper_bound});
      }
      break;
  }
  return metric;
}

prometheus::MetricType TypeOf(Kind kind) {
  return kind == Kind::kGauge     ? prometheus::MetricType::Gauge
         : kind == Kind::kCounter ? prometheus::MetricType::Counter
                                  : prometheus::MetricType::Histogram;
}

/// The sources of one address.
class Sources final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> families;
    // Threads of a library in C call this. Without memory the page is shorter.
    CatchAll([&] {
      Page page;
      Fill(&page);
      for (const auto& [name, metric] : page.metrics()) {
        prometheus::MetricFamily& family = families.emplace_back();
        family.name = name;
        family.help = metric.help;
        family.type = TypeOf(metric.kind);
        for (const auto& [labels, sample] : metric.samples) {
          family.metric.push_back(Convert(labels, sample, metric.kind));
        }
      }
      return Status::OK();
    }).IgnoreError();
    return families;
  }

  void Replace(const Source* from, const Source* to) {
    MutexLock lock(&mutex_);
    if (from != nullptr) std::erase(sources_, from);
    if (to != nullptr) sources_.push_back(to);
  }

 private:
  void Fill(Page* page) const {
    page->Add({"nacre_build_info", "1; the version is a label.", Kind::kGauge},
              {{"version", GetNacreVersionAsString()}}, 1.0);
    // A page at a time, so that a source which goes knows that it is not asked any more.
    MutexLock lock(&mutex_);
    for (const Source* source : sources_) source->Collect(page);
  }

  mutable Mutex mutex_;
  std::vector<const Source*> sources_ GUARDED_BY(mutex_);
};

/// Threads that begin meanwhile get none of the process's signals: an application awaits them in
/// threads of its own.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

/// HOST:PORT. The library behind Exposer understands more than that, such as lists and options.
Status CheckAddress(const std::string& address, std::string* host) {
  const Status malformed =
      Status::InvalidArgument(fmt::format("metrics address '{}' is not HOST:PORT", address));
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return malformed;
  *host = address.substr(0, colon);
  const bool bracketed = host->front() == '[' && host->back() == ']';
  const auto allowed = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ||
           (bracketed && (c == ':' || c == '[' || c == ']'));
  };
  uint64_t port = 0;
  if (!std::ranges::all_of(*host, allowed) ||
      !ParseNumber(address.substr(colon + 1), 0, UINT16_MAX, &port).ok()) {
    return malformed;
  }
  return Status::OK();
}

}  // namespace

/// A listener and those that share it.
class Endpoint::Listener {
 public:
  Listener(const std::string& address, const std::string& host)
      : exposer_(address), address_(fmt::format("{}:{}", host, exposer_.GetListeningPorts()[0])) {
    exposer_.RegisterCollectable(sources_);
  }

  const std::string& address() const { return address_; }
  Sources* sources() { return sources_.get(); }
  int shares = 0;  ///< Guarded by the mutex of Addresses.

 private:
  const std::shared_ptr<Sources> sources_ = std::make_shared<Sources>();
  prometheus::Exposer exposer_;
  const std::string address_;
};

/// The addresses at which this process listens, as they were named.
struct Endpoint::Addresses {
  /// Held while one begins or ends, so that it is free when it is asked for again.
  Mutex mutex;
  std::map<std::string, std::unique_ptr<Listener>> listeners GUARDED_BY(mutex);

  static Addresses* OfProcess() {
    static const NeverDestroyed<Addresses> addresses;
    return &*addresses;
  }
};

Status Endpoint::Open(const std::string& address, std::unique_ptr<Endpoint>* endpoint) {
  std::string host;
  NACRE_RETURN_IF_ERROR(CheckAddress(address, &host));
  Addresses* const addresses = Addresses::OfProcess();
  MutexLock lock(&addresses->mutex);
  auto it = addresses->listeners.find(address);
  if (it == addresses->listeners.end()) {
    std::unique_ptr<Listener> listener;
    const BlockedSignals blocked;
    try {  // The library throws when it cannot listen.
      listener = std::make_unique<Listener>(address, host);
    } catch (const std::exception& e) {
      return Status::IOError(fmt::format("metrics address '{}': {}", address, e.what()));
    }
    it = addresses->listeners.emplace(address, std::move(listener)).first;
  }
  ++it->second->shares;
  endpoint->reset(new Endpoint(address, it->second.get()));
  return Status::OK();
}

Endpoint::Endpoint(std::string key, Listener* listener)
    : key_(std::move(key)), listener_(listener) {}

Endpoint::~Endpoint() {
  Show(nullptr);
  Addresses* const addresses = Addresses::OfProcess();
  MutexLock lock(&addresses->mutex);
  if (--listener_->shares == 0) addresses->listeners.erase(key_);
}

const std::string& Endpoint::address() const { return listener_->address(); }

void Endpoint::Show(const Source* source) {
  listener_->sources()->Replace(source_, source);
  source_ = source;
}

std::string AddressOr(const std::string& named) {
  if (!named.empty()) return named;
  const char* const from_environment = std::getenv("NACRE_METRICS");
  return from_environment == nullptr ? "" : from_environment;
}

Status OpenEndpoint(const std::string& named, std::unique_ptr<Endpoint>* endpoint,
                    Status* left_out) {
  endpoint->reset();
  *left_out = Status::OK();
  const std::string address = AddressOr(named);
  if (address.empty()) return Status::OK();
  Status status = Endpoint::Open(address, endpoint);
  if (status.ok() || !named.empty()) return status;
  *left_out = status.WithContext("NACRE_METRICS");
  return Status::OK();
}

}  // namespace nacre::metrics
