#include "table/format/redundancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "util/codes/reed_solomon.h"

namespace nacre {

namespace {

constexpr int kMaxCopies = 16;
constexpr int kMaxData = ReedSolomon::kMaxData;
constexpr int kMaxParity = ReedSolomon::kMaxParity;

bool ParseNumber(std::string_view text, int* number) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, *number);
  return error == std::errc() && end == last;
}

/// What is between the parentheses of "<name>(...)".
bool ParseCall(std::string_view text, std::string_view name, std::string_view* arguments) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return false;
  *arguments = text.substr(1, text.size() - 2);
  return true;
}

/// Splits at commas that are not within parentheses.
std::vector<std::string_view> SplitRules(std::string_view text) {
  std::vector<std::string_view> rules;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != ',' || depth != 0) continue;
    rules.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  rules.push_back(text.substr(begin));
  return rules;
}

}  // namespace

Redundancy Redundancy::OnNodes(int nodes) const {
  if (striped() && nodes - parity >= 2) {
    return {.kind = kind, .data = static_cast<uint8_t>(nodes - parity), .parity = parity};
  }
  return Copies(std::clamp(nodes, 1, parity + 1));
}

std::string Redundancy::ToString() const {
  if (striped()) return "rs(" + std::to_string(data) + "," + std::to_string(parity) + ")";
  return parity == 0 ? "none" : "rep(" + std::to_string(fragments()) + ")";
}

bool IsValid(const Redundancy& redundancy) {
  if (redundancy.striped()) {
    return redundancy.data >= 2 && redundancy.data <= kMaxData && redundancy.parity <= kMaxParity;
  }
  return redundancy.kind == RedundancyKind::kReplicated && redundancy.data == 1 &&
         redundancy.parity < kMaxCopies;
}

Status ParseRedundancy(const Slice& text, Redundancy* redundancy) {
  const std::string_view view = text.ToStringView();
  if (view == "none") {
    *redundancy = Redundancy();
    return Status::OK();
  }
  std::string_view arguments;
  int copies = 0;
  if (ParseCall(view, "rep", &arguments) && ParseNumber(arguments, &copies) && copies >= 1 &&
      copies <= kMaxCopies) {
    *redundancy = Redundancy::Copies(copies);
    return Status::OK();
  }
  int data = 0;
  int parity = 0;
  const bool coded = ParseCall(view, "rs", &arguments);
  const size_t comma = arguments.find(',');
  if (coded && comma != std::string_view::npos && ParseNumber(arguments.substr(0, comma), &data) &&
      ParseNumber(arguments.substr(comma + 1), &parity) && data >= 1 && data <= kMaxData &&
      parity >= 0 && parity <= kMaxParity) {
    *redundancy = data == 1 ? Redundancy::Copies(parity + 1)
                            : Redundancy{.kind = RedundancyKind::kErasureCoded,
                                         .data = static_cast<uint8_t>(data),
                                         .parity = static_cast<uint8_t>(parity)};
    return Status::OK();
  }
  return Status::InvalidArgument("redundancy \"" + text.ToString() +
                                 "\" is neither none nor rep(n) with n from 1 to 16 nor rs(k,m) "
                                 "with k from 1 to 16 and m from 0 to 4");
}

Status RedundancyPolicy::Parse(const Slice& text, RedundancyPolicy* policy) {
  const std::string name = "redundancy \"" + text.ToString() + "\": ";
  RedundancyPolicy parsed;
  parsed.rules_.clear();
  const std::string_view view = text.ToStringView();
  if (view.find(':') == std::string_view::npos) {
    parsed.rules_.emplace_back();
    NACRE_RETURN_IF_ERROR(ParseRedundancy(text, &parsed.rules_.back().redundancy));
    *policy = std::move(parsed);
    return Status::OK();
  }
  for (const std::string_view rule : SplitRules(view)) {
    const size_t colon = rule.find(':');
    const std::string_view level = rule.substr(0, std::min(colon, rule.size()));
    Rule& added = parsed.rules_.emplace_back();
    const bool any = level == "*";
    if (colon == std::string_view::npos ||
        !(any || (level.starts_with('L') && ParseNumber(level.substr(1), &added.level) &&
                  added.level >= 0))) {
      return Status::InvalidArgument(name + "\"" + std::string(rule) +
                                     "\" is no rule like L0:rep(3) or *:rs(4,2)");
    }
    const std::string_view value = rule.substr(colon + 1);
    NACRE_RETURN_IF_ERROR(ParseRedundancy(Slice(value.data(), value.size()), &added.redundancy));
  }
  const auto is_general = [](const Rule& rule) { return rule.level == kAnyLevel; };
  if (std::find_if(parsed.rules_.begin(), parsed.rules_.end(), is_general) !=
      parsed.rules_.end() - 1) {
    return Status::InvalidArgument(name + "the last rule, and no other, must be for *");
  }
  *policy = std::move(parsed);
  return Status::OK();
}

const Redundancy& RedundancyPolicy::For(int level) const {
  for (const Rule& rule : rules_) {
    if (rule.level == level || rule.level == kAnyLevel) return rule.redundancy;
  }
  return rules_.back().redundancy;
}

const Redundancy& RedundancyPolicy::Widest() const {
  return std::max_element(rules_.begin(), rules_.end(),
                          [](const Rule& a, const Rule& b) {
                            return a.redundancy.fragments() < b.redundancy.fragments();
                          })
      ->redundancy;
}

int RedundancyPolicy::MostParity() const {
  int most = 0;
  for (const Rule& rule : rules_) most = std::max<int>(most, rule.redundancy.parity);
  return most;
}

std::string RedundancyPolicy::ToString() const {
  if (rules_.size() == 1) return rules_[0].redundancy.ToString();
  std::string text;
  for (const Rule& rule : rules_) {
    if (!text.empty()) text += ",";
    text += rule.level == kAnyLevel ? "*" : fmt::format("L{}", rule.level);
    text += ':';
    text += rule.redundancy.ToString();
  }
  return text;
}

}  // namespace nacre
