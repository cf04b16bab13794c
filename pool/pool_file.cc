#include "pool/pool_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/connect/pool_device.h"

namespace nacre::pool {
namespace {

constexpr char kFileScheme[] = "file";
constexpr size_t kMaxFileBytes = 1 << 20;

std::string_view WithoutSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// A path may have a '#' in it.
std::string_view WithoutComment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
  }
  return line;
}

/// Gathers what the lines say.
class PoolLines {
 public:
  explicit PoolLines(std::map<std::string, std::string> parameters)
      : parameters_(std::move(parameters)) {}

  Status Take(std::string_view line) {
    return line.starts_with('?') ? TakeParameters(line) : TakeNode(line);
  }
  /// Makes it a pool of one transport, if all nodes have the same.
  void Finish(Uri* pool) {
    const bool mixed = schemes_.size() > 1;
    pool->scheme = mixed ? kMixedScheme : *schemes_.begin();
    pool->addresses.clear();
    for (Uri& node : nodes_) {
      std::string& address = node.addresses[0];
      pool->addresses.push_back(mixed ? node.scheme + ":" + address : std::move(address));
    }
    pool->parameters = std::move(parameters_);
  }
  bool empty() const { return nodes_.empty(); }

 private:
  Status TakeParameters(std::string_view line) {
    Uri uri;
    NACRE_RETURN_IF_ERROR(ParseUri(std::string(kFileScheme) + ":" + std::string(line), &uri));
    for (auto& [name, value] : uri.parameters) {
      if (!parameters_.emplace(name, value).second) {
        return Status::InvalidArgument(fmt::format("parameter '{}' is there already", name));
      }
    }
    return Status::OK();
  }
  Status TakeNode(std::string_view line) {
    Uri node;
    NACRE_RETURN_IF_ERROR(ParseUri(Slice(line.data(), line.size()), &node));
    if (node.addresses.size() != 1 || !node.parameters.empty()) {
      return Status::InvalidArgument("a line has one address; parameters have a line of their own");
    }
    if (node.scheme == "embedded" || node.scheme == kFileScheme || node.scheme == kMixedScheme) {
      return Status::InvalidArgument(fmt::format("'{}' names no node", line));
    }
    if (!known_.insert(std::string(line)).second) {
      return Status::InvalidArgument(fmt::format("'{}' is there already", line));
    }
    schemes_.insert(node.scheme);
    nodes_.push_back(std::move(node));
    return Status::OK();
  }

  std::map<std::string, std::string> parameters_;
  std::vector<Uri> nodes_;
  std::set<std::string> schemes_;
  std::set<std::string> known_;
};

}  // namespace

Status ParsePoolFile(const Slice& text, const std::string& name, Uri* pool) {
  PoolLines lines(pool->parameters);
  std::string_view rest = text.ToStringView();
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = WithoutSpace(WithoutComment(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    NACRE_RETURN_IF_ERROR(lines.Take(line).WithContext(fmt::format("{}:{}", name, number)));
  }
  if (lines.empty()) return Status::InvalidArgument(fmt::format("{} names no nodes", name));
  lines.Finish(pool);
  return Status::OK();
}

Status ResolvePoolFile(Uri* pool) {
  if (pool->scheme != kFileScheme) return Status::OK();
  if (pool->addresses.size() != 1) {
    return Status::InvalidArgument(fmt::format("'{}': one path is wanted", pool->ToString()));
  }
  const std::string& path = pool->addresses[0];
  const auto failed = [&] {
    return Status::IOError(fmt::format("pool file '{}': {}", path, std::strerror(errno)));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return failed();
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return failed();
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) {
    return Status::InvalidArgument(
        fmt::format("pool file '{}' is longer than {} bytes", path, kMaxFileBytes));
  }
  return ParsePoolFile(text, path, pool);
}

}  // namespace nacre::pool
