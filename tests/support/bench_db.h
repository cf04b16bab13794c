#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

// What benchmarks of databases share.

/// Throws, as a benchmark without its database says nothing.
void BenchCheck(const Status& status);

/// "key1000000" and so on: of one length up to nine million.
std::string BenchKey(uint64_t n);

/// Options of a new embedded database that compacts nothing by itself.
Options BenchOptions();

/// Empty.
std::unique_ptr<DB> OpenBench(const Options& options);

/// With `keys` keys with values of 100 bytes, compacted.
std::unique_ptr<DB> FillBench(const Options& options, uint64_t keys,
                              std::string (*key)(uint64_t) = BenchKey);

}  // namespace nacre
