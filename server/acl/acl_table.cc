#include "server/acl/acl_table.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "util/posix_file.h"

namespace nacre::server {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{16} << 20;
constexpr const char* kDefaultUser = "default";

Status CheckName(std::string_view name) {
  if (name.find_first_of(std::string_view(" \0", 2)) == std::string_view::npos) {
    return Status::OK();
  }
  return Status::InvalidArgument("Usernames can't contain spaces or null characters");
}

std::shared_ptr<const AclUser> NewDefaultUser() {
  return std::make_shared<const AclUser>(AclUser::Default());
}

}  // namespace

AclTable::AclTable(const AclCatalog* catalog) : catalog_(catalog) {
  const MutexLock lock(&mutex_);
  users_[kDefaultUser] = NewDefaultUser();
}

std::shared_ptr<const AclUser> AclTable::Find(std::string_view name) const {
  const MutexLock lock(&mutex_);
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second;
}

std::shared_ptr<const AclUser> AclTable::LogIn(std::string_view name,
                                               std::string_view password) const {
  std::shared_ptr<const AclUser> user = Find(name);
  return user != nullptr && user->Accepts(password) ? user : nullptr;
}

std::vector<std::shared_ptr<const AclUser>> AclTable::All() const {
  std::vector<std::shared_ptr<const AclUser>> all;
  const MutexLock lock(&mutex_);
  for (const auto& [name, user] : users_) all.push_back(user);
  return all;
}

Status AclTable::Set(const std::string& name, const std::vector<std::string>& words) {
  NACRE_RETURN_IF_ERROR(CheckName(name));
  const bool channels = all_channels.load(std::memory_order_relaxed);
  const MutexLock lock(&mutex_);
  const auto known = users_.find(name);
  AclUser user = known == users_.end() ? AclUser(name, NewId(), channels) : *known->second;
  NACRE_RETURN_IF_ERROR(user.Apply(*catalog_, words, channels));
  users_[name] = std::make_shared<const AclUser>(std::move(user));
  version_.fetch_add(1, std::memory_order_release);
  return Status::OK();
}

void AclTable::SetDefaultPassword(const std::string& password) {
  const std::vector<std::string> words =
      password.empty() ? std::vector<std::string>{"nopass"}
                       : std::vector<std::string>{"resetpass", ">" + password};
  Set(kDefaultUser, words).IgnoreError();  // The words are right.
}

bool AclTable::Delete(const std::string& name) {
  const MutexLock lock(&mutex_);
  const bool deleted = users_.erase(name) > 0;
  if (deleted) version_.fetch_add(1, std::memory_order_release);
  return deleted;
}

Status AclTable::Parse(const std::string& path, const std::string& text, Users* users) {
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(std::move(word));
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto where = [&](const std::string& what) {
      return Status::InvalidArgument(fmt::format("{}:{}: {}", path, number, what));
    };
    if (words[0] != "user" || words.size() < 2) {
      return where("a line begins with the word 'user' and a name");
    }
    const std::string name = words[1];
    words.erase(words.begin(), words.begin() + 2);
    if (users->contains(name)) return where("Duplicate user '" + name + "' found");
    const bool channels = all_channels.load(std::memory_order_relaxed);
    AclUser user(name, name == kDefaultUser ? 0 : NewId(), channels);
    const Status applied = user.Apply(*catalog_, std::move(words), channels);
    if (!applied.ok()) return where(std::string(applied.message()));
    (*users)[name] = std::make_shared<const AclUser>(std::move(user));
  }
  return Status::OK();
}

Status AclTable::Load(const std::string& path) {
  std::string text;
  NACRE_RETURN_IF_ERROR(ReadSmallFile(path, kFileBytesMax, &text));
  Users users;
  NACRE_RETURN_IF_ERROR(Parse(path, text, &users));
  users.try_emplace(kDefaultUser, NewDefaultUser());
  const MutexLock lock(&mutex_);
  users_ = std::move(users);
  version_.fetch_add(1, std::memory_order_release);
  return Status::OK();
}

Status AclTable::Save(const std::string& path) const {
  std::string text;
  for (const auto& user : All()) text += user->Describe() + "\n";
  return WriteSmallFile(path, text);
}

}  // namespace nacre::server
