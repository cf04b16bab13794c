#include "db_bench/load_flags.h"

#include <gflags/gflags.h>

#include "db_bench/flag_choice.h"

DEFINE_string(
    key_dist, "uniform",
    "Keys of the benchmarks in random order, but for fillrandom and YCSB's. uniform. zipf: "
    "some keys, anywhere, are taken far more often than others. latest: the same, but the "
    "higher a key is the more often. hotspot: the lowest keys are hot");
DEFINE_double(zipf_theta, 0.99,
              "zipf, latest: the key of rank i is taken in proportion to 1 / i^theta");
DEFINE_double(hotspot_set_fraction, 0.2, "hotspot: the part of the keys that is hot");
DEFINE_double(hotspot_op_fraction, 0.8, "hotspot: the part of the operations on hot keys");

namespace nacre::bench {
namespace {

// Written so that NaN fails.
Status CheckFraction(const char* flag, double value) {
  if (value >= 0 && value <= 1) return Status::OK();
  return Status::InvalidArgument(fmt::format("--{} must be in [0, 1]", flag));
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
  config->zipf_theta = FLAGS_zipf_theta;
  config->hotspot_set_fraction = FLAGS_hotspot_set_fraction;
  config->hotspot_op_fraction = FLAGS_hotspot_op_fraction;
  return Status::OK();
}

}  // namespace nacre::bench
