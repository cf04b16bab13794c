#include "db_bench/flags/load_flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <string>

#include "db_bench/flags/flag_choice.h"
#include "db_bench/twitter/twitter_clusters.h"

DEFINE_string(
    key_dist, "uniform",
    "Keys of the benchmarks in random order, but for fillrandom and YCSB's. uniform. zipf: "
    "some keys, anywhere, are taken far more often than others. latest: the same, but the "
    "higher a key is the more often. hotspot: the lowest keys are hot");
DEFINE_double(zipf_theta, 0.99,
              "zipf, latest: the key of rank i is taken in proportion to 1 / i^theta");
DEFINE_double(hotspot_set_fraction, 0.2, "hotspot: the part of the keys that is hot");
DEFINE_double(hotspot_op_fraction, 0.8, "hotspot: the part of the operations on hot keys");

DEFINE_double(
    value_k, 0.2615,
    "Shape of the pareto distribution of value sizes, beyond --value_size_min; the defaults "
    "are those that RocksDB's mixgraph has from Facebook");
DEFINE_double(value_sigma, 25.45, "Its scale, in bytes");

DEFINE_int32(twitter_cluster, 0,
             "The cluster whose published statistics twitter follows: shares of operations, skew, "
             "time to live, and sizes where no flag has another");
DEFINE_int64(ttl_ops, -1,
             "twitter: how many operations a value lives before it is deleted, if nothing else is "
             "written; 0: for ever. Negative: as many as the cluster has requests in that time");

DEFINE_double(
    target_ops_per_second, 0,
    "Operations that all threads together start in a second in benchmarks in random order, "
    "whether those before them have ended or not; latencies are counted from when an "
    "operation was to start. 0: each starts when the one before it has ended");
DEFINE_string(arrivals, "poisson",
              "When they start: poisson (independently of one another) or constant");
DEFINE_string(latency_files, "",
              "What the paths of files begin with that get the distribution of latencies of each "
              "benchmark and kind of operation, as tools of HDR histograms read it (.hgrm)");

namespace nacre::bench {
namespace {

// Written so that NaN fails.
Status CheckFraction(const char* flag, double value) {
  if (value >= 0 && value <= 1) return Status::OK();
  return Status::InvalidArgument(fmt::format("--{} must be in [0, 1]", flag));
}

/// Sets the flags of sizes that are not given.
Status ParseTwitter(BenchConfig* config) {
  if (std::count(config->benchmarks.begin(), config->benchmarks.end(), "twitter") == 0) {
    return Status::OK();
  }
  const TwitterCluster* cluster = FindTwitterCluster(FLAGS_twitter_cluster);
  if (cluster == nullptr) {
    std::string numbers;
    for (const TwitterCluster& known : TwitterClusters()) {
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", known.number);
    }
    return Status::InvalidArgument(
        fmt::format("--twitter_cluster={}: must be one of {}", FLAGS_twitter_cluster, numbers));
  }
  config->twitter_cluster = cluster->number;
  config->ttl_ops =
      FLAGS_ttl_ops < 0 ? cluster->TtlRequests() : static_cast<uint64_t>(FLAGS_ttl_ops);
  const auto set_default = [](const char* flag, size_t bytes) {
    gflags::SetCommandLineOptionWithMode(flag, std::to_string(bytes).c_str(),
                                         gflags::SET_FLAG_IF_DEFAULT);
  };
  set_default("key_size", cluster->key_bytes);
  set_default("value_size", cluster->value_bytes);
  return Status::OK();
}

}  // namespace

Status ParseLoadFlags(BenchConfig* config) {
  NACRE_RETURN_IF_ERROR(Choose<KeyDistribution>("key_dist", FLAGS_key_dist,
                                                {{"uniform", KeyDistribution::kUniform},
                                                 {"zipf", KeyDistribution::kZipf},
                                                 {"latest", KeyDistribution::kLatest},
                                                 {"hotspot", KeyDistribution::kHotspot}},
                                                &config->key_dist));
  if (!(FLAGS_zipf_theta >= 0.01 && FLAGS_zipf_theta <= 10)) {
    return Status::InvalidArgument("--zipf_theta must be in [0.01, 10]");
  }
  NACRE_RETURN_IF_ERROR(CheckFraction("hotspot_set_fraction", FLAGS_hotspot_set_fraction));
  NACRE_RETURN_IF_ERROR(CheckFraction("hotspot_op_fraction", FLAGS_hotspot_op_fraction));
  NACRE_RETURN_IF_ERROR(Choose<Arrivals>(
      "arrivals", FLAGS_arrivals,
      {{"poisson", Arrivals::kPoisson}, {"constant", Arrivals::kConstant}}, &config->arrivals));
  if (!(FLAGS_target_ops_per_second == 0 ||
        (FLAGS_target_ops_per_second >= 0.001 && FLAGS_target_ops_per_second <= 1e9))) {
    return Status::InvalidArgument("--target_ops_per_second must be 0 or in [0.001, 1e9]");
  }
  config->target_ops_per_second = FLAGS_target_ops_per_second;
  config->latency_files = FLAGS_latency_files;
  if (!(FLAGS_value_k >= 0 && FLAGS_value_k <= 0.99)) {
    return Status::InvalidArgument("--value_k must be in [0, 0.99]");
  }
  if (!(FLAGS_value_sigma > 0 && FLAGS_value_sigma <= 1e9)) {
    return Status::InvalidArgument("--value_sigma must be positive, and at most 1e9");
  }
  config->value_k = FLAGS_value_k;
  config->value_sigma = FLAGS_value_sigma;
  NACRE_RETURN_IF_ERROR(ParseTwitter(config));
  config->zipf_theta = FLAGS_zipf_theta;
  config->hotspot_set_fraction = FLAGS_hotspot_set_fraction;
  config->hotspot_op_fraction = FLAGS_hotspot_op_fraction;
  return Status::OK();
}

}  // namespace nacre::bench
