// Goal: nothing that threads count is lost or counted twice, also around resets; names and texts
// are those that tools for RocksDB read. Method: threads that count known sums; texts of small
// cases.

#include "nacre/statistics.h"

#include <gtest/gtest.h>

#include <thread>

namespace nacre {
namespace {

TEST(StatisticsTest, SumsOverThreads) {
  const auto statistics = CreateDBStatistics();
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 10'000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kEach; ++i) {
        statistics->recordTick(NUMBER_KEYS_WRITTEN);
        statistics->recordTick(BYTES_WRITTEN, i);
        statistics->recordInHistogram(BYTES_PER_WRITE, i);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(statistics->getTickerCount(NUMBER_KEYS_WRITTEN), kThreads * kEach);
  EXPECT_EQ(statistics->getTickerCount(BYTES_WRITTEN), kThreads * kEach * (kEach - 1) / 2);
  HistogramData data;
  statistics->histogramData(BYTES_PER_WRITE, &data);
  EXPECT_EQ(data.count, kThreads * kEach);
  EXPECT_EQ(data.sum, kThreads * kEach * (kEach - 1) / 2);
  EXPECT_EQ(data.min, 0);
  EXPECT_EQ(data.max, kEach - 1);
  EXPECT_NEAR(data.median, kEach / 2, kEach / 4);
}

TEST(StatisticsTest, NothingIsLostBetweenResets) {
  const auto statistics = CreateDBStatistics();
  std::atomic<bool> stop{false};
  uint64_t counted = 0;
  std::thread writer([&] {
    while (!stop.load()) {
      statistics->recordTick(NUMBER_KEYS_READ);
      ++counted;
    }
  });
  uint64_t taken = 0;
  while (taken < 1000) taken += statistics->getAndResetTickerCount(NUMBER_KEYS_READ);
  stop = true;
  writer.join();
  taken += statistics->getAndResetTickerCount(NUMBER_KEYS_READ);
  EXPECT_EQ(taken, counted);
}

TEST(StatisticsTest, WhatIsReadBesideCountsAndResetsIsOfTheValuesCounted) {
  const auto statistics = CreateDBStatistics();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop.load()) {
      for (const uint64_t value : {100, 200}) statistics->recordInHistogram(DB_GET, value);
    }
  });
  std::thread resetter([&] {
    while (!stop.load()) EXPECT_TRUE(statistics->Reset().ok());
  });
  HistogramData data;
  const auto is_sound = [&] {
    return data.count == 0 || (data.min >= 100 && data.max <= 200 && data.median >= data.min &&
                               data.median <= data.max);
  };
  for (int i = 0; i < 5'000; ++i) {
    statistics->histogramData(DB_GET, &data);
    if (!is_sound()) break;
  }
  stop = true;
  writer.join();
  resetter.join();
  EXPECT_TRUE(is_sound()) << data.count << " from " << data.min << " to " << data.max << ", median "
                          << data.median;
}

TEST(StatisticsTest, ResetForgetsAll) {
  const auto statistics = CreateDBStatistics();
  statistics->recordTick(NUMBER_KEYS_READ, 7);
  statistics->recordInHistogram(DB_GET, 7);
  ASSERT_TRUE(statistics->Reset().ok());
  EXPECT_EQ(statistics->getTickerCount(NUMBER_KEYS_READ), 0u);
  HistogramData data;
  statistics->histogramData(DB_GET, &data);
  EXPECT_EQ(data.count, 0u);
  statistics->recordInHistogram(DB_GET, 3);
  statistics->histogramData(DB_GET, &data);
  EXPECT_EQ(data.count, 1u);
  EXPECT_EQ(data.min, 3);
  EXPECT_EQ(data.max, 3);
  statistics->setTickerCount(NUMBER_KEYS_READ, 5);
  statistics->recordTick(NUMBER_KEYS_READ);
  EXPECT_EQ(statistics->getTickerCount(NUMBER_KEYS_READ), 6u);
}

TEST(StatisticsTest, LevelsSayWhatIsCounted) {
  const auto statistics = CreateDBStatistics();
  const auto count_all = [&](StatsLevel level) {
    EXPECT_TRUE(statistics->Reset().ok());
    statistics->set_stats_level(level);
    statistics->recordTick(NUMBER_KEYS_READ);
    statistics->recordInHistogram(BYTES_PER_READ, 1);
    statistics->reportTimeToHistogram(DB_GET, 1);
    HistogramData sizes;
    HistogramData times;
    statistics->histogramData(BYTES_PER_READ, &sizes);
    statistics->histogramData(DB_GET, &times);
    return statistics->getTickerCount(NUMBER_KEYS_READ) * 100 + sizes.count * 10 + times.count;
  };
  EXPECT_EQ(count_all(StatsLevel::kDisableAll), 0u);
  EXPECT_EQ(count_all(StatsLevel::kExceptHistogramOrTimers), 100u);
  EXPECT_EQ(count_all(StatsLevel::kExceptTimers), 110u);
  EXPECT_EQ(count_all(StatsLevel::kExceptDetailedTimers), 111u);
  EXPECT_EQ(count_all(StatsLevel::kAll), 111u);
}

TEST(StatisticsTest, TextIsAsRocksDbs) {
  const auto statistics = CreateDBStatistics();
  statistics->recordTick(NUMBER_KEYS_WRITTEN, 12);
  statistics->recordInHistogram(DB_GET, 1);
  const std::string text = statistics->ToString();
  EXPECT_NE(text.find("rocksdb.number.keys.written COUNT : 12\n"), std::string::npos) << text;
  EXPECT_NE(text.find("rocksdb.db.get.micros P50 : 1.000000 P95 : 1.000000 P99 : 1.000000 "
                      "P100 : 1.000000 COUNT : 1 SUM : 1\n"),
            std::string::npos)
      << text;
  std::map<std::string, uint64_t> tickers;
  ASSERT_TRUE(statistics->getTickerMap(&tickers));
  EXPECT_EQ(tickers.size(), static_cast<size_t>(TICKER_ENUM_MAX));
  EXPECT_EQ(tickers.at("rocksdb.number.keys.written"), 12u);
  EXPECT_EQ(HistogramsNameMap.size(), static_cast<size_t>(HISTOGRAM_ENUM_MAX));
  EXPECT_NE(statistics->getHistogramString(DB_GET).find("Count: 1 "), std::string::npos);
}

TEST(StatisticsTest, NumbersOutOfRangeAreIgnored) {
  const auto statistics = CreateDBStatistics();
  statistics->recordTick(TICKER_ENUM_MAX);
  statistics->recordInHistogram(HISTOGRAM_ENUM_MAX, 1);
  EXPECT_EQ(statistics->getTickerCount(TICKER_ENUM_MAX), 0u);
}

}  // namespace
}  // namespace nacre
