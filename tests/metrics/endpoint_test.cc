// Goal: what a process shows is complete, true and legible for Prometheus at the address that was
// named, as long as there is a share in it and no longer; a wrong address is an error that names
// it. Method: sources with known numbers, and pages fetched over a socket.

#include "metrics/endpoint.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "metrics/page.h"
#include "rdma/unique_fd.h"
#include "tests/support/metrics_page.h"
#include "tests/support/status_assert.h"

namespace nacre::metrics {
namespace {

constexpr Description kApples = {"nacre_test_apples", "Apples.", Kind::kGauge};
constexpr Description kPears = {"nacre_test_pears_total", "Pears.", Kind::kCounter};
constexpr Description kWeights = {"nacre_test_weight_grams", "Weights.", Kind::kHistogram};

class Basket final : public Source {
 public:
  explicit Basket(std::string owner) : labels_{{"owner", std::move(owner)}} {}
  void Collect(Page* page) const override {
    page->Add(kApples, labels_, uint64_t{3});
    page->Add(kPears, labels_, 4.5);
  }

 private:
  const Labels labels_;
};

std::unique_ptr<Endpoint> Open(const std::string& address) {
  std::unique_ptr<Endpoint> endpoint;
  EXPECT_TRUE(IsOk(Endpoint::Open(address, &endpoint)));
  return endpoint;
}

TEST(PageTest, TheFirstOfEqualSamplesStays) {
  Page page;
  page.Add(kApples, {{"owner", "a"}}, 1.0);
  page.Add(kApples, {{"owner", "b"}}, 2.0);
  page.Add(kApples, {{"owner", "a"}}, 3.0);
  const Page::Metric& metric = page.metrics().at("nacre_test_apples");
  EXPECT_EQ(metric.help, "Apples.");
  ASSERT_EQ(metric.samples.size(), 2u);
  EXPECT_EQ(metric.samples.at({{"owner", "a"}}).value, 1);
  EXPECT_EQ(metric.samples.at({{"owner", "b"}}).value, 2);
}

TEST(PageTest, BucketsCountWhatIsWithinTheirBounds) {
  const std::vector<uint64_t> values = {0, 1, 7, 7, 100, 4'000, 59'000'000, 4'000'000'000};
  Histogram histogram;
  double sum = 0;
  for (const uint64_t value : values) {
    histogram.Add(value);
    sum += static_cast<double>(value);
  }
  Page page;
  page.AddHistogram(kWeights, {}, histogram, 0.001);
  const Page::Sample& sample = page.metrics().at("nacre_test_weight_grams").samples.at({});
  EXPECT_EQ(sample.count, values.size());
  EXPECT_DOUBLE_EQ(sample.value, sum * 0.001);
  ASSERT_GT(sample.buckets.size(), 20u);
  EXPECT_GT(sample.buckets.back().upper_bound, 10'000);
  double last = -1;
  for (const Page::Bucket& bucket : sample.buckets) {
    EXPECT_GT(bucket.upper_bound, last);
    last = bucket.upper_bound;
    const auto within = std::count_if(values.begin(), values.end(), [&](uint64_t value) {
      return static_cast<double>(value) * 0.001 <= bucket.upper_bound * (1 + 1e-9);
    });
    EXPECT_EQ(bucket.count, static_cast<uint64_t>(within)) << bucket.upper_bound;
  }
}

TEST(PageTest, LabelsAreUtf8) {
  for (const char* text :
       {"", "orders", "a\"b\\c\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x9a"}) {
    EXPECT_EQ(AsLabel(text), text);
  }
  EXPECT_EQ(AsLabel("a\xff"), "a\\xff");
  EXPECT_EQ(AsLabel("\xc3\xa9\x80"), "\\xc3\\xa9\\x80");
  for (const char* text : {"\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_NE(AsLabel(text), text);
  }
}

TEST(EndpointTest, APageHasWhatEachSourceShowsUntilItGoes) {
  const Basket ann("ann");
  const Basket bob("b\"o\\b\n");
  const std::unique_ptr<Endpoint> first = Open("127.0.0.1:0");
  std::unique_ptr<Endpoint> second = Open("127.0.0.1:0");
  EXPECT_EQ(first->address(), second->address());
  EXPECT_NE(first->address(), "127.0.0.1:0");
  const std::string empty = GetMetrics(first->address());
  EXPECT_NE(empty.find("nacre_build_info{version=\""), std::string::npos) << empty;
  EXPECT_EQ(empty.find("nacre_test"), std::string::npos) << empty;

  first->Show(&ann);
  second->Show(&bob);
  const std::string page = GetMetrics(first->address());
  std::map<std::string, double> samples = SamplesOf(page);
  EXPECT_EQ(samples.at("nacre_test_apples{owner=\"ann\"}"), 3) << page;
  EXPECT_EQ(samples.at("nacre_test_pears_total{owner=\"b\\\"o\\\\b\\n\"}"), 4.5) << page;
  // What all sources have in common is said once.
  const std::string type = "# TYPE nacre_test_pears_total counter\n";
  EXPECT_NE(page.find(type), std::string::npos) << page;
  EXPECT_EQ(page.find(type), page.rfind(type)) << page;
  EXPECT_NE(page.find("# HELP nacre_test_apples Apples.\n"), std::string::npos) << page;

  second.reset();
  samples = SamplesOf(GetMetrics(first->address()));
  EXPECT_TRUE(samples.contains("nacre_test_apples{owner=\"ann\"}"));
  EXPECT_FALSE(samples.contains("nacre_test_apples{owner=\"b\\\"o\\\\b\\n\"}"));
  first->Show(nullptr);
  EXPECT_EQ(GetMetrics(first->address()).find("nacre_test"), std::string::npos);
}

TEST(EndpointTest, ItIsClosedWithTheLastShareAndCanBeOpenedAgain) {
  std::unique_ptr<Endpoint> first = Open("127.0.0.1:0");
  const std::string address = first->address();
  std::unique_ptr<Endpoint> second = Open("127.0.0.1:0");
  first.reset();
  EXPECT_NE(GetMetrics(address), "");
  second.reset();
  EXPECT_EQ(GetMetrics(address), "");
  first = Open(address);
  EXPECT_NE(GetMetrics(address), "");
}

TEST(EndpointTest, WrongAddressesAreNamed) {
  std::unique_ptr<Endpoint> endpoint;
  for (const char* address :
       {"9100", ":9100", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:9100s", "127.0.0.1:0,127.0.0.1:1", "a b:1", "[::1:1", "::1:1"}) {
    const Status status = Endpoint::Open(address, &endpoint);
    EXPECT_TRUE(status.IsInvalidArgument()) << address << ": " << status.ToString();
    EXPECT_NE(status.ToString().find(std::string("'") + address + "'"), std::string::npos)
        << status.ToString();
  }
  // No machine has this one.
  const Status status = Endpoint::Open("192.0.2.1:9100", &endpoint);
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
  EXPECT_NE(status.ToString().find("192.0.2.1:9100"), std::string::npos) << status.ToString();
  EXPECT_EQ(endpoint, nullptr);
}

TEST(EndpointTest, AnAddressThatIsTakenIsNamed) {
  const rdma::UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in taken = {};
  taken.sin_family = AF_INET;
  taken.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(taken);
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&taken), size), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  ASSERT_EQ(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&taken), &size), 0);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(taken.sin_port));
  std::unique_ptr<Endpoint> endpoint;
  const Status status = Endpoint::Open(address, &endpoint);
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
  EXPECT_NE(status.ToString().find(address), std::string::npos) << status.ToString();
}

TEST(EndpointTest, ItsThreadsGetNoSignals) {
  const auto blocked = [] {
    std::map<std::string, std::string> masks;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream status(thread.path() / "status");
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("SigBlk:")) masks[thread.path().filename()] = line.substr(8);
      }
    }
    return masks;
  };
  const std::map<std::string, std::string> before = blocked();
  const std::unique_ptr<Endpoint> endpoint = Open("127.0.0.1:0");
  ASSERT_NE(GetMetrics(endpoint->address()), "");
  const std::map<std::string, std::string> after = blocked();
  EXPECT_GT(after.size(), before.size());
  const std::string self = std::to_string(::gettid());
  EXPECT_EQ(after.at(self), before.at(self));
  // Another thread of the test may still be starting, with its signals blocked by pthread_create.
  for (const auto& [thread, mask] : after) {
    if (!before.contains(thread)) {
      EXPECT_NE(std::stoull(mask, nullptr, 16) & (uint64_t{1} << (SIGTERM - 1)), 0u) << mask;
    }
  }
}

TEST(EndpointTest, SourcesComeAndGoWhilePagesAreMade) {
  const std::unique_ptr<Endpoint> endpoint = Open("127.0.0.1:0");
  std::atomic<bool> done{false};
  std::vector<std::thread> owners;
  for (int i = 0; i < 3; ++i) {
    owners.emplace_back([&, i] {
      while (!done.load()) {
        const std::unique_ptr<Endpoint> share = Open("127.0.0.1:0");
        const auto basket = std::make_unique<Basket>(std::to_string(i));
        share->Show(basket.get());
        share->Show(nullptr);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    for (const auto& [sample, value] : SamplesOf(GetMetrics(endpoint->address()))) {
      if (sample.starts_with("nacre_test_apples")) {
        EXPECT_EQ(value, 3);
      }
    }
  }
  done.store(true);
  for (std::thread& owner : owners) owner.join();
}

}  // namespace
}  // namespace nacre::metrics
