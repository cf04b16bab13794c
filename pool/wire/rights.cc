#include "pool/wire/rights.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre::pool {
namespace {

constexpr std::string_view kRead = "read";
constexpr std::string_view kWrite = "write";
constexpr std::string_view kAdmin = "admin";

}  // namespace

Status CheckDatabasePattern(std::string_view pattern) {
  const auto is_plain = [](char c) { return c > ' ' && c != 0x7f && c != ',' && c != '='; };
  const size_t star = pattern.find('*');
  if (!pattern.empty() && std::all_of(pattern.begin(), pattern.end(), is_plain) &&
      (star == std::string_view::npos || star + 1 == pattern.size())) {
    return Status::OK();
  }
  return Status::InvalidArgument(
      fmt::format("'{}' is neither a database's name nor a beginning of names and '*'", pattern));
}

bool MatchesDatabase(std::string_view pattern, std::string_view database) {
  if (!pattern.ends_with('*')) return database == pattern;
  return database.starts_with(pattern.substr(0, pattern.size() - 1));
}

Status Rights::Parse(std::string_view word, Rights* rights) {
  Rights parsed;
  if (word == kRead) {
    parsed.kind_ = Kind::kRead;
  } else if (word == kWrite) {
    parsed.kind_ = Kind::kWrite;
  } else if (word.starts_with(kWrite) && word.substr(kWrite.size()).starts_with(':')) {
    parsed.kind_ = Kind::kWrite;
    std::string_view rest = word.substr(kWrite.size() + 1);
    while (true) {
      const size_t comma = rest.find(',');
      const std::string_view pattern = rest.substr(0, comma);
      NACRE_RETURN_IF_ERROR(CheckDatabasePattern(pattern));
      parsed.databases_.emplace_back(pattern);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else if (word != kAdmin && !word.empty()) {
    // The word may be a secret that stands in the wrong place.
    return Status::InvalidArgument(
        "the first word is none of 'read', 'write', 'write:DATABASE,PREFIX*,...', 'admin'");
  }
  *rights = std::move(parsed);
  return Status::OK();
}

Status Rights::Denied(std::string_view secret, std::string_view missing) const {
  return Status::NotSupported(
      fmt::format("secret '{}' has the right '{}', not {}", secret, ToString(), missing));
}

std::string Rights::ToString() const {
  switch (kind_) {
    case Kind::kRead:
      return std::string(kRead);
    case Kind::kWrite:
      break;
    case Kind::kAdmin:
      return std::string(kAdmin);
  }
  if (databases_.empty()) return std::string(kWrite);
  return fmt::format("{}:{}", kWrite, fmt::join(databases_, ","));
}

bool Rights::MayWriteTo(std::string_view database) const {
  if (kind_ != Kind::kWrite) return kind_ == Kind::kAdmin;
  return databases_.empty() ||
         std::any_of(databases_.begin(), databases_.end(), [&](const std::string& pattern) {
           return MatchesDatabase(pattern, database);
         });
}

}  // namespace nacre::pool
