#include "pool/connect/secret_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "util/uri.h"

namespace nacre::pool {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr std::string_view kQuota = "quota";
constexpr std::string_view kRetired = "retired";

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsPlain(char c) { return c > ' ' && c < 0x7f; }

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    if (IsSpace(line[at])) {
      at++;
      continue;
    }
    const size_t begin = at;
    while (at < line.size() && !IsSpace(line[at])) at++;
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

Status ParseQuota(const std::vector<std::string_view>& words, SecretFile* file) {
  if (words.size() != 3) return Status::InvalidArgument("a quota is 'quota DATABASE BYTES'");
  SecretFile::Quota quota{.databases = std::string(words[1])};
  NACRE_RETURN_IF_ERROR(CheckDatabasePattern(quota.databases));
  NACRE_RETURN_IF_ERROR(ParseSize(std::string(words[2]), &quota.bytes));
  for (const SecretFile::Quota& other : file->quotas) {
    if (other.databases == quota.databases) {
      return Status::InvalidArgument(fmt::format("a second quota of '{}'", quota.databases));
    }
  }
  file->quotas.push_back(std::move(quota));
  return Status::OK();
}

/// What each line is to be apart from the others.
Status CheckApart(const SecretFile& file) {
  std::set<std::string> names;
  std::set<rdma::SecretId> ids;
  for (const SecretFile::Line& line : file.lines) {
    rdma::SecretId id;
    NACRE_RETURN_IF_ERROR(rdma::IdOfSecret(line.secret, &id));
    const std::string name = NameOf(line);
    if (!names.insert(name).second) {
      return Status::InvalidArgument(fmt::format("the name '{}' is there twice", name));
    }
    if (ids.insert(id).second) continue;
    return Status::InvalidArgument(
        fmt::format("the secret '{}' is there twice, or has another one's id", name));
  }
  if (file.lines.size() <= rdma::SecretRing::kMaxSecrets) return Status::OK();
  return Status::InvalidArgument(fmt::format("{} secrets: at most {} are possible",
                                             file.lines.size(), rdma::SecretRing::kMaxSecrets));
}

Status ParseBare(std::string_view content, SecretFile* file) {
  if (content.ends_with('\n')) content.remove_suffix(1);
  if (content.ends_with('\r')) content.remove_suffix(1);
  if (content.empty()) return Status::InvalidArgument("the secret is empty");
  if (content.size() > kMaxSecretBytes) {
    return Status::InvalidArgument(
        fmt::format("the secret is longer than {} bytes", kMaxSecretBytes));
  }
  file->bare = true;
  file->lines.push_back({.rights = {}, .secret = std::string(content), .name = ""});
  return Status::OK();
}

}  // namespace

const SecretFile::Line& SecretFile::own() const {
  const auto in_use = [](const Line& line) { return !line.retired; };
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
    return in_use(line) && line.rights.may_administer();
  });
  return found != lines.end() ? *found : *std::find_if(lines.begin(), lines.end(), in_use);
}

std::vector<rdma::SecretTerms> SecretFile::Terms() const {
  const Line& first = own();
  std::vector<rdma::SecretTerms> terms;
  const auto add = [&](const Line& line) {
    terms.push_back({.secret = line.secret,
                     .name = NameOf(line),
                     .rights = line.rights.ToString(),
                     .may_write = line.rights.may_write(),
                     .retired = line.retired});
  };
  add(first);
  for (const Line& line : lines) {
    if (&line != &first) add(line);
  }
  return terms;
}

std::string NameOf(const SecretFile::Line& line) {
  rdma::SecretId id = 0;
  if (!line.name.empty() || !rdma::IdOfSecret(line.secret, &id).ok()) return line.name;
  return fmt::format("{:08x}", id);
}

std::string FormatSecretLine(const SecretFile::Line& line) {
  std::string text = line.retired ? fmt::format("{} ", kRetired) : "";
  text += fmt::format("{} {}", line.rights.ToString(), line.secret);
  return line.name.empty() ? text : text + " " + line.name;
}

Status ParseSecretLine(std::string_view text, SecretFile* file) {
  std::vector<std::string_view> words = WordsOf(text);
  if (words.empty() || words[0].starts_with('#')) return Status::OK();
  if (words[0] == kQuota) return ParseQuota(words, file);
  SecretFile::Line line;
  line.retired = words[0] == kRetired;
  if (line.retired) words.erase(words.begin());
  if (words.empty()) return Status::InvalidArgument("a secret is 'RIGHTS SECRET [NAME]'");
  NACRE_RETURN_IF_ERROR(Rights::Parse(words[0], &line.rights));
  if (words.size() < 2 || words.size() > 3) {
    return Status::InvalidArgument("a secret is 'RIGHTS SECRET [NAME]'");
  }
  const std::string_view secret = words[1];
  if (secret.size() < kMinListedSecretBytes || secret.size() > kMaxSecretBytes ||
      !std::all_of(secret.begin(), secret.end(), IsPlain)) {
    return Status::InvalidArgument(
        fmt::format("a secret is {} to {} characters of ASCII without spaces",
                    kMinListedSecretBytes, kMaxSecretBytes));
  }
  if (words.size() == 3) line.name = words[2];
  if (line.name.size() > kMaxNameBytes ||
      !std::all_of(line.name.begin(), line.name.end(), IsPlain)) {
    return Status::InvalidArgument(
        fmt::format("a name is at most {} characters of ASCII", kMaxNameBytes));
  }
  line.secret = secret;
  file->lines.push_back(std::move(line));
  return Status::OK();
}

Status ParseSecretFile(std::string_view content, SecretFile* file) {
  SecretFile parsed;
  std::string_view rest = content;
  const auto take_line = [&rest] {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  };
  if (take_line() != kSecretFileHeader) {
    NACRE_RETURN_IF_ERROR(ParseBare(content, &parsed));
    *file = std::move(parsed);
    return Status::OK();
  }
  if (content.size() > kMaxSecretFileBytes) {
    return Status::InvalidArgument(
        fmt::format("the file is longer than {} bytes", kMaxSecretFileBytes));
  }
  for (int number = 2; !rest.empty(); number++) {
    NACRE_RETURN_IF_ERROR(
        ParseSecretLine(take_line(), &parsed).WithContext(fmt::format("line {}", number)));
  }
  if (std::all_of(parsed.lines.begin(), parsed.lines.end(),
                  [](const SecretFile::Line& line) { return line.retired; })) {
    return Status::InvalidArgument("there is no secret in it that is not retired");
  }
  NACRE_RETURN_IF_ERROR(CheckApart(parsed));
  *file = std::move(parsed);
  return Status::OK();
}

}  // namespace nacre::pool
