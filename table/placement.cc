#include "table/placement.h"

#include <charconv>
#include <string_view>

namespace nacre {
namespace {

constexpr int kCopiesMax = 16;

/// The number in "<name>(<number>)".
bool ParseArgument(std::string_view text, std::string_view name, int* number) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  if (text.size() < 3 || text.front() != '(' || text.back() != ')') return false;
  const char* const first = text.data() + 1;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(first, last, *number);
  return error == std::errc() && end == last;
}

}  // namespace

std::string Redundancy::ToString() const {
  return copies == 1 ? "none" : "rep(" + std::to_string(copies) + ")";
}

Status ParseRedundancy(const Slice& text, Redundancy* redundancy) {
  const std::string_view view = text.ToStringView();
  const std::string name = "redundancy \"" + text.ToString() + "\"";
  if (view == "none") {
    *redundancy = Redundancy();
    return Status::OK();
  }
  if (view.starts_with("rs(")) {
    return Status::NotSupported(name + ": erasure coding is not supported yet");
  }
  int copies = 0;
  if (!ParseArgument(view, "rep", &copies) || copies < 1 || copies > kCopiesMax) {
    return Status::InvalidArgument(name + " is neither none nor rep(n) with n from 1 to 16");
  }
  *redundancy = Redundancy{RedundancyKind::kReplicated, static_cast<uint8_t>(copies)};
  return Status::OK();
}

}  // namespace nacre
