// Goal: a report can be laid beside RocksDB's, number by number.
// Method: reports that RocksDB 7.8 printed (Statistics::getHistogramString) for the same values;
// percentiles against sorted values; merging against adding.

#include "util/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre {
namespace {

TEST(HistogramTest, ReportIsRocksDbs) {
  Histogram histogram;
  uint64_t x = 1;
  for (int i = 0; i < 5000; ++i) {
    x = x * 6364136223846793005 + 1442695040888963407;
    histogram.Add((x >> 40) >> ((x >> 34) % 24));
  }
  EXPECT_EQ(
      "Count: 5000 Average: 705448.3900  StdDev: 2164320.83\n"
      "Min: 0  Median: 2494.0594  Max: 16764422\n"
      "Percentiles: P50: 2494.06 P75: 151304.35 P99: 12730232.56 P99.9: 16764422.00 P99.99: "
      "16764422.00\n"
      "------------------------------------------------------\n"
      "[       0,       1 ]      391   7.820%   7.820% ##\n"
      "(       1,       2 ]       93   1.860%   9.680% \n"
      "(       2,       3 ]      121   2.420%  12.100% \n"
      "(       3,       4 ]       51   1.020%  13.120% \n"
      "(       4,       6 ]      123   2.460%  15.580% \n"
      "(       6,      10 ]      145   2.900%  18.480% #\n"
      "(      10,      15 ]      127   2.540%  21.020% #\n"
      "(      15,      22 ]       90   1.800%  22.820% \n"
      "(      22,      34 ]      128   2.560%  25.380% #\n"
      "(      34,      51 ]      108   2.160%  27.540% \n"
      "(      51,      76 ]      118   2.360%  29.900% \n"
      "(      76,     110 ]       99   1.980%  31.880% \n"
      "(     110,     170 ]      119   2.380%  34.260% \n"
      "(     170,     250 ]      128   2.560%  36.820% #\n"
      "(     250,     380 ]      124   2.480%  39.300% \n"
      "(     380,     580 ]      112   2.240%  41.540% \n"
      "(     580,     870 ]      117   2.340%  43.880% \n"
      "(     870,    1300 ]      121   2.420%  46.300% \n"
      "(    1300,    1900 ]      125   2.500%  48.800% #\n"
      "(    1900,    2900 ]      101   2.020%  50.820% \n"
      "(    2900,    4400 ]      133   2.660%  53.480% #\n"
      "(    4400,    6600 ]       98   1.960%  55.440% \n"
      "(    6600,    9900 ]      101   2.020%  57.460% \n"
      "(    9900,   14000 ]       95   1.900%  59.360% \n"
      "(   14000,   22000 ]      150   3.000%  62.360% #\n"
      "(   22000,   33000 ]      168   3.360%  65.720% #\n"
      "(   33000,   50000 ]      114   2.280%  68.000% \n"
      "(   50000,   75000 ]      132   2.640%  70.640% #\n"
      "(   75000,  110000 ]      123   2.460%  73.100% \n"
      "(  110000,  170000 ]      138   2.760%  75.860% #\n"
      "(  170000,  250000 ]      134   2.680%  78.540% #\n"
      "(  250000,  380000 ]      108   2.160%  80.700% \n"
      "(  380000,  570000 ]      120   2.400%  83.100% \n"
      "(  570000,  860000 ]      123   2.460%  85.560% \n"
      "(  860000, 1200000 ]       95   1.900%  87.460% \n"
      "( 1200000, 1900000 ]      126   2.520%  89.980% #\n"
      "( 1900000, 2900000 ]      128   2.560%  92.540% #\n"
      "( 2900000, 4300000 ]      114   2.280%  94.820% \n"
      "( 4300000, 6500000 ]       83   1.660%  96.480% \n"
      "( 6500000, 9800000 ]       96   1.920%  98.400% \n"
      "( 9800000, 14000000 ]       43   0.860%  99.260% \n"
      "( 14000000, 22000000 ]       37   0.740% 100.000% \n",
      histogram.ToString());
}

TEST(HistogramTest, ReportOfFewValuesIsRocksDbs) {
  Histogram histogram;
  EXPECT_EQ(
      "Count: 0 Average: 0.0000  StdDev: 0.00\n"
      "Min: 0  Median: 0.0000  Max: 0\n"
      "Percentiles: P50: 0.00 P75: 0.00 P99: 0.00 P99.9: 0.00 P99.99: 0.00\n"
      "------------------------------------------------------\n",
      histogram.ToString());
  histogram.Add(0);
  EXPECT_EQ(
      "Count: 1 Average: 0.0000  StdDev: 0.00\n"
      "Min: 0  Median: 0.0000  Max: 0\n"
      "Percentiles: P50: 0.00 P75: 0.00 P99: 0.00 P99.9: 0.00 P99.99: 0.00\n"
      "------------------------------------------------------\n"
      "[       0,       1 ]        1 100.000% 100.000% ####################\n",
      histogram.ToString());
  histogram.Clear();
  EXPECT_EQ(Histogram().ToString(), histogram.ToString());
}

TEST(HistogramTest, PercentilesAreWithinABucketOfTheTruth) {
  Random random(TestSeed(303));
  std::vector<uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(random.Skewed(40));
    histogram.Add(values.back());
  }
  std::sort(values.begin(), values.end());
  double last = 0;
  for (const double p : {0.0, 1.0, 10.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto rank = static_cast<size_t>(p / 100 * static_cast<double>(values.size() - 1));
    const auto truth = static_cast<double>(values[rank]);
    const double answer = histogram.Percentile(p);
    // A bucket is half as wide again as the one before, after cutting to two digits.
    EXPECT_LE(answer, truth * 1.7 + 1) << p;
    EXPECT_GE(answer, truth / 1.7 - 1) << p;
    EXPECT_GE(answer, last) << p;
    last = answer;
  }
  EXPECT_EQ(values.front(), histogram.min());
  EXPECT_EQ(values.back(), histogram.max());
}

TEST(HistogramTest, MergingIsAdding) {
  Random random(TestSeed(304));
  Histogram all;
  std::vector<Histogram> parts(3);
  for (int i = 0; i < 3000; ++i) {
    // Small enough that sums of squares are exact, so that their order does not matter.
    const uint64_t value = random.Skewed(16);
    all.Add(value);
    parts[random.Uniform(parts.size())].Add(value);
  }
  Histogram merged;
  for (const Histogram& part : parts) merged.Merge(part);
  EXPECT_EQ(all.ToString(), merged.ToString());
  merged.Merge(Histogram());
  EXPECT_EQ(all.ToString(), merged.ToString());
}

TEST(HistogramTest, TakesEveryValue) {
  Histogram histogram;
  uint64_t expected = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (const uint64_t value : {power - 1, power, power + 1}) {
      histogram.Add(value);
      ++expected;
    }
  }
  histogram.Add(UINT64_MAX);
  EXPECT_EQ(expected + 1, histogram.count());
  EXPECT_EQ(0U, histogram.min());
  EXPECT_EQ(UINT64_MAX, histogram.max());
  // The last limit that fits 64 bits, as in RocksDB.
  EXPECT_EQ(1.3e19, histogram.Percentile(100));
}

}  // namespace
}  // namespace nacre
