#include "metrics/page.h"

#include <fmt/format.h>

#include <string_view>

namespace nacre::metrics {
namespace {

/// Buckets are twice as wide as those of Histogram: bounds grow by 2.25 each, so that quantiles
/// are right within a half, and there are 22 of them from 1 to 60 million (a minute in
/// microseconds).
constexpr size_t kStep = 2;
constexpr uint64_t kLargestBound = 60'000'000;

/// How many bytes the character at the front of `text` takes; 0: it is no UTF-8.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80                       ? 1
                        : byte(0) >= 0xc2 && byte(0) <= 0xdf ? 2
                        : byte(0) >= 0xe0 && byte(0) <= 0xef ? 3
                        : byte(0) >= 0xf0 && byte(0) <= 0xf4 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  // Overlong ones, surrogates, and what is beyond Unicode.
  if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
  if (byte(0) == 0xed && byte(1) > 0x9f) return 0;
  if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

}  // namespace

std::string AsLabel(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = CharacterLength(rest);
    if (length > 0) {
      rest.remove_prefix(length);
      continue;
    }
    std::string escaped;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      escaped += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
    return escaped;
  }
  return text;
}

Page::Sample* Page::NewSample(const Description& metric, const Labels& labels) {
  auto& [name, entry] = *metrics_.try_emplace(metric.name).first;
  if (entry.samples.empty()) {
    entry.help = metric.help;
    entry.kind = metric.kind;
  }
  const auto [sample, added] = entry.samples.try_emplace(labels);
  return added ? &sample->second : nullptr;
}

void Page::Add(const Description& metric, const Labels& labels, double value) {
  if (Sample* const sample = NewSample(metric, labels); sample != nullptr) sample->value = value;
}

void Page::AddHistogram(const Description& metric, const Labels& labels, const Histogram& values,
                        double unit) {
  Sample* const sample = NewSample(metric, labels);
  if (sample == nullptr) return;
  sample->value = values.sum() * unit;
  sample->count = values.count();
  uint64_t count = 0;
  for (size_t bucket = 0; bucket < values.buckets().size(); ++bucket) {
    count += values.buckets()[bucket];
    const uint64_t limit = Histogram::LimitOf(bucket);
    if (bucket % kStep == 0) {
      sample->buckets.push_back({static_cast<double>(limit) * unit, count});
    }
    if (limit >= kLargestBound) break;
  }
}

Labels With(Labels labels, std::string name, std::string value) {
  labels.emplace_back(std::move(name), std::move(value));
  return labels;
}

}  // namespace nacre::metrics
