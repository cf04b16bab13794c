#include "tests/support/bench_db.h"

#include <stdexcept>

namespace nacre {

void BenchCheck(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

std::string BenchKey(uint64_t n) { return "key" + std::to_string(1'000'000 + n); }

Options BenchOptions() {
  Options options;
  options.create_if_missing = true;
  options.pool_uri = "embedded:?nodes=1&size=512MiB";
  options.disable_auto_compactions = true;
  return options;
}

std::unique_ptr<DB> OpenBench(const Options& options) {
  std::unique_ptr<DB> db;
  BenchCheck(DB::Open(options, "bench", &db));
  return db;
}

std::unique_ptr<DB> FillBench(const Options& options, uint64_t keys, std::string (*key)(uint64_t)) {
  constexpr size_t kValueBytes = 100;
  std::unique_ptr<DB> db = OpenBench(options);
  for (uint64_t n = 0; n < keys; ++n) {
    BenchCheck(db->Put({}, key(n), std::string(kValueBytes, 'v')));
  }
  BenchCheck(db->CompactRange({}, nullptr, nullptr));
  return db;
}

}  // namespace nacre
