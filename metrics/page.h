#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "util/histogram.h"

namespace nacre::metrics {

enum class Kind : uint8_t { kGauge, kCounter, kHistogram };

/// What a metric is, by Prometheus' conventions: the name begins with "nacre_", has its base unit
/// at the end, and "_total" behind it if it only grows.
struct Description {
  const char* name;
  const char* help;
  Kind kind;
};

/// Names and values, in any order.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// What one GET /metrics is answered: the samples of all sources of the process, by metric.
///
/// Two samples of a metric with the same labels cannot be told apart. The first one stays: shards
/// of a keyspace all tell what they share.
///
/// Thread safety: none; one thread fills it.
class Page {
 public:
  struct Bucket {
    double upper_bound = 0;
    uint64_t count = 0;  ///< Values up to there.
  };
  struct Sample {
    double value = 0;  ///< Sum of the values, for a histogram.
    std::vector<Bucket> buckets{};
    uint64_t count = 0;
  };
  struct Metric {
    std::string help;
    Kind kind = Kind::kGauge;
    std::map<Labels, Sample> samples;
  };

  /// For gauges and counters.
  void Add(const Description& metric, const Labels& labels, double value);
  void Add(const Description& metric, const Labels& labels, uint64_t value) {
    Add(metric, labels, static_cast<double>(value));
  }
  void Add(const Description& metric, const Labels& labels, bool value) {
    Add(metric, labels, value ? 1.0 : 0.0);
  }
  /// `unit`: what a value of 1 is in the base unit (1e-6 for microseconds).
  void AddHistogram(const Description& metric, const Labels& labels, const Histogram& values,
                    double unit);

  /// By name.
  const std::map<std::string, Metric>& metrics() const { return metrics_; }

 private:
  /// Null if there is one with these labels.
  Sample* NewSample(const Description& metric, const Labels& labels);

  std::map<std::string, Metric> metrics_;
};

/// What has metrics to tell: a database, a node, an archive.
class Source {
 public:
  virtual ~Source() = default;
  /// Called by threads of the endpoint, one at a time. It takes a few milliseconds at most, and
  /// keeps no writer waiting.
  virtual void Collect(Page* page) const = 0;
};

/// `text` if it is UTF-8, which label values have to be; else with each byte beyond ASCII written
/// as \xNN.
std::string AsLabel(const std::string& text);

/// `labels` and one more.
Labels With(Labels labels, std::string name, std::string value);

}  // namespace nacre::metrics
