#include "ctl/secrets_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "pool/connect/pool_secret.h"
#include "pool/connect/secret_file.h"
#include "rdma/handshake.h"
#include "rdma/unique_fd.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

using pool::SecretFile;

constexpr std::string_view kSuffix = ".new";
/// The name of the secret of a file that had no other.
constexpr std::string_view kFormerName = "first";

Status Failed(const std::string& path, const char* what) {
  return Status::IOError(fmt::format("{} '{}': {}", what, path, std::strerror(errno)));
}

/// An edit of a file: the new one lies beside it until Commit, and keeps other edits away.
class Edit {
 public:
  Edit() = default;
  ~Edit() {
    if (!new_path_.empty()) ::unlink(new_path_.c_str());
  }
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  /// `must_exist`: else a file that is missing reads as empty.
  Status Begin(const std::string& path, bool must_exist) {
    std::error_code error;
    // A link stays, and leads to the new file.
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    path_ = error ? path : real.string();
    const std::string beside = path_ + std::string(kSuffix);
    fd_ = rdma::UniqueFd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd_.valid() && errno == EEXIST) {
      return Status::Busy(fmt::format(
          "'{}' is there: another edit is under way, or was cut short; then remove it", beside));
    }
    if (!fd_.valid()) return Failed(beside, "make");
    new_path_ = beside;
    struct stat before;
    if (::stat(path_.c_str(), &before) != 0) {
      return errno == ENOENT && !must_exist ? Status::OK() : Failed(path_, "look at");
    }
    // The node reads it as the user that could read it before.
    if (::fchown(fd_.get(), before.st_uid, before.st_gid) != 0) return Failed(beside, "give away");
    return pool::ReadSecretFile(path_, nullptr, &file_).WithContext("before the change");
  }

  const SecretFile& file() const { return file_; }
  /// The lines as they are, comments and quotas included; of a file that was all one secret, what
  /// says the same with rights.
  Status Lines(std::vector<std::string>* lines) const {
    lines->clear();
    if (file_.lines.empty()) return Status::OK();
    if (file_.bare) {
      SecretFile::Line line = file_.lines[0];
      line.name = kFormerName;
      lines->push_back(pool::FormatSecretLine(line));
      SecretFile same;
      const Status status = pool::ParseSecretLine(lines->back(), &same);
      if (status.ok() && same.lines.size() == 1 && same.lines[0].secret == line.secret)
        return status;
      return Status::InvalidArgument(fmt::format(
          "'{}': the secret in it cannot be listed beside others, because of its length or a space",
          path_));
    }
    std::string content;
    NACRE_RETURN_IF_ERROR(ReadAll(&content));
    std::string_view rest = content;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      lines->emplace_back(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    lines->erase(lines->begin());  // The header.
    return Status::OK();
  }

  Status Commit(const std::vector<std::string>& lines) {
    std::string content(pool::kSecretFileHeader);
    content += '\n';
    for (const std::string& line : lines) content += line + '\n';
    SecretFile after;
    NACRE_RETURN_IF_ERROR(
        pool::ParseSecretFile(content, &after).WithContext("after the change, which was not made"));
    for (size_t done = 0; done < content.size();) {
      const ssize_t count = ::write(fd_.get(), content.data() + done, content.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed(new_path_, "write");
      done += static_cast<size_t>(count);
    }
    if (::fsync(fd_.get()) != 0) return Failed(new_path_, "write");
    if (::rename(new_path_.c_str(), path_.c_str()) != 0) return Failed(path_, "replace");
    new_path_.clear();
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const rdma::UniqueFd of_folder(
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!of_folder.valid() || ::fsync(of_folder.get()) != 0) return Failed(folder, "write");
    return Status::OK();
  }

 private:
  Status ReadAll(std::string* content) const {
    const rdma::UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return Failed(path_, "read");
    char bytes[4096];
    while (true) {
      const ssize_t count = ::read(fd.get(), bytes, sizeof(bytes));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed(path_, "read");
      if (count == 0) return Status::OK();
      content->append(bytes, static_cast<size_t>(count));
    }
  }

  std::string path_;
  std::string new_path_;  ///< Empty: there is none.
  rdma::UniqueFd fd_;
  SecretFile file_;
};

Status DrawSecret(std::string* secret) {
  secret->clear();
  for (int half = 0; half < 2; half++) {
    rdma::Nonce bytes;
    NACRE_RETURN_IF_ERROR(rdma::DrawNonce(&bytes));
    for (const char byte : bytes) *secret += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  }
  return Status::OK();
}

std::string IdOf(SecretFile::Line line) {
  line.name.clear();
  return pool::NameOf(line);
}

/// The secret of that name or id in one of the lines.
Status FindLine(const std::vector<std::string>& lines, const std::string& name, size_t* at) {
  for (size_t i = 0; i < lines.size(); i++) {
    SecretFile one;
    NACRE_RETURN_IF_ERROR(pool::ParseSecretLine(lines[i], &one));
    if (one.lines.empty()) continue;
    if (pool::NameOf(one.lines[0]) != name && IdOf(one.lines[0]) != name) continue;
    *at = i;
    return Status::OK();
  }
  return Status::NotFound(fmt::format("no secret is named '{}', nor has that id", name));
}

void PrintSecretsJson(const SecretFile& file) {
  std::string secrets;
  for (const SecretFile::Line& line : file.lines) {
    secrets += fmt::format(
        "{}{{\"name\": {}, \"id\": \"{}\", \"rights\": {}, \"own\": {}, \"retired\": {}}}",
        secrets.empty() ? "" : ", ", JsonString(pool::NameOf(line)), IdOf(line),
        JsonString(line.rights.ToString()), &line == &file.own(), line.retired);
  }
  std::string quotas;
  for (const SecretFile::Quota& quota : file.quotas) {
    quotas += fmt::format("{}{{\"databases\": {}, \"bytes\": {}}}", quotas.empty() ? "" : ", ",
                          JsonString(quota.databases), quota.bytes);
  }
  fmt::print("{{\"secrets\": [{}], \"quotas\": [{}]}}\n", secrets, quotas);
}

Status List(const std::string& path, bool json) {
  SecretFile file;
  NACRE_RETURN_IF_ERROR(pool::ReadSecretFile(path, nullptr, &file));
  if (json) {
    PrintSecretsJson(file);
    return Status::OK();
  }
  fmt::print("{:<24} {:<8} {}\n", "name", "id", "rights");
  for (const SecretFile::Line& line : file.lines) {
    std::string_view what;
    if (line.retired) what = "  (retired)";
    if (&line == &file.own()) what = "  (proven to other nodes)";
    fmt::print("{:<24} {:<8} {}{}\n", pool::NameOf(line), IdOf(line), line.rights.ToString(), what);
  }
  for (const SecretFile::Quota& quota : file.quotas) {
    fmt::print("quota of {} for '{}'\n", FormatBytes(quota.bytes), quota.databases);
  }
  return Status::OK();
}

Status Add(const std::string& path, const std::string& rights, const std::string& name) {
  SecretFile::Line line;
  if (rights.empty()) return Status::InvalidArgument("no rights are given");
  NACRE_RETURN_IF_ERROR(pool::Rights::Parse(rights, &line.rights));
  NACRE_RETURN_IF_ERROR(DrawSecret(&line.secret));
  line.name = name;
  Edit edit;
  NACRE_RETURN_IF_ERROR(edit.Begin(path, /*must_exist=*/false));
  std::vector<std::string> lines;
  NACRE_RETURN_IF_ERROR(edit.Lines(&lines));
  lines.push_back(pool::FormatSecretLine(line));
  NACRE_RETURN_IF_ERROR(edit.Commit(lines));
  fmt::print("{}\n", line.secret);
  fmt::print(stderr, "added '{}' with the right '{}' to {}\n", pool::NameOf(line),
             line.rights.ToString(), path);
  return Status::OK();
}

Status Change(const std::string& path, const std::string& name, const std::string& how) {
  Edit edit;
  NACRE_RETURN_IF_ERROR(edit.Begin(path, /*must_exist=*/true));
  std::vector<std::string> lines;
  NACRE_RETURN_IF_ERROR(edit.Lines(&lines));
  size_t at = 0;
  NACRE_RETURN_IF_ERROR(FindLine(lines, name, &at));
  if (how == "retire") {
    SecretFile one;
    NACRE_RETURN_IF_ERROR(pool::ParseSecretLine(lines[at], &one));
    one.lines[0].retired = true;
    lines[at] = pool::FormatSecretLine(one.lines[0]);
  } else {
    const std::string line = std::move(lines[at]);
    lines.erase(lines.begin() + static_cast<ptrdiff_t>(at));
    if (how == "prefer") lines.insert(lines.begin(), line);
  }
  NACRE_RETURN_IF_ERROR(edit.Commit(lines));
  fmt::print(stderr, "{}: {} '{}'\n", path, how, name);
  return Status::OK();
}

}  // namespace

bool FitsSecretsCommand(const std::vector<std::string>& words) {
  if (words.size() < 3 || words[0] != "secrets") return false;
  if (words[1] == "list") return words.size() == 3;
  if (words[1] == "add") return words.size() == 4 || words.size() == 5;
  return (words[1] == "prefer" || words[1] == "retire" || words[1] == "revoke") &&
         words.size() == 4;
}

Status RunSecretsCommand(const std::vector<std::string>& words, bool json) {
  const std::string& path = words[2];
  if (words[1] == "list") return List(path, json);
  if (words[1] == "add") return Add(path, words[3], words.size() == 5 ? words[4] : "");
  return Change(path, words[3], words[1]);
}

}  // namespace nacre::ctl
