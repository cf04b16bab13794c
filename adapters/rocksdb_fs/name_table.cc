#include "adapters/rocksdb_fs/name_table.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace nacre::rocksfs {
namespace {

std::string ParentOf(const std::string& normal) {
  const size_t slash = normal.rfind('/');
  return slash == 0 ? "/" : normal.substr(0, slash);
}

/// "/a" and "/a/b/c" give "b"; empty if `path` does not lie below `folder`.
std::string_view ChildOf(const std::string& folder, const std::string& path) {
  std::string_view rest = path;
  const size_t prefix = folder == "/" ? 1 : folder.size() + 1;
  if (rest.size() <= prefix || !rest.starts_with(folder) || rest[prefix - 1] != '/') return {};
  rest.remove_prefix(prefix);
  return rest.substr(0, rest.find('/'));
}

}  // namespace

std::string NameTable::Normalize(const std::string& path) {
  std::string normal;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    if (!part.empty() && part != ".") normal.append("/").append(part);
    begin = end + 1;
  }
  return normal.empty() ? "/" : normal;
}

NameTable::Kind NameTable::Find(const std::string& path) const {
  const std::string normal = Normalize(path);
  MutexLock lock(&mutex_);
  if (files_.contains(normal)) return Kind::kFile;
  return folders_.contains(normal) ? Kind::kFolder : Kind::kNothing;
}

std::shared_ptr<RemoteFile> NameTable::File(const std::string& path) const {
  const std::string normal = Normalize(path);
  MutexLock lock(&mutex_);
  const auto found = files_.find(normal);
  return found == files_.end() ? nullptr : found->second;
}

bool NameTable::IsFreeInFolder(const std::string& normal) const {
  return !folders_.contains(normal) && folders_.contains(ParentOf(normal));
}

bool NameTable::PutFile(const std::string& path, std::shared_ptr<RemoteFile> file) {
  const std::string normal = Normalize(path);
  MutexLock lock(&mutex_);
  if (!IsFreeInFolder(normal)) return false;
  // What had the name ends with the caller's pointer, after the lock.
  files_[normal].swap(file);
  return true;
}

bool NameTable::RemoveFile(const std::string& path) {
  const std::string normal = Normalize(path);
  std::shared_ptr<RemoteFile> ended;
  MutexLock lock(&mutex_);
  const auto found = files_.find(normal);
  if (found == files_.end()) return false;
  ended = std::move(found->second);
  files_.erase(found);
  return true;
}

bool NameTable::Rename(const std::string& from, const std::string& to) {
  const std::string normal_from = Normalize(from);
  const std::string normal_to = Normalize(to);
  std::shared_ptr<RemoteFile> file;
  MutexLock lock(&mutex_);
  const auto found = files_.find(normal_from);
  if (found == files_.end() || !IsFreeInFolder(normal_to)) return false;
  if (normal_from == normal_to) return true;
  file = std::move(found->second);
  files_.erase(found);
  files_[normal_to].swap(file);
  return true;
}

bool NameTable::MakeFolder(const std::string& path) {
  const std::string normal = Normalize(path);
  MutexLock lock(&mutex_);
  if (folders_.contains(normal)) return false;
  for (std::string at = normal; at != "/"; at = ParentOf(at)) {
    if (files_.contains(at)) return false;
  }
  for (std::string at = normal; at != "/"; at = ParentOf(at)) folders_.insert(at);
  return true;
}

bool NameTable::RemoveFolder(const std::string& path) {
  if (!Children(path).empty()) return false;
  const std::string normal = Normalize(path);
  MutexLock lock(&mutex_);
  return normal != "/" && folders_.erase(normal) > 0;
}

std::vector<std::string> NameTable::Children(const std::string& path) const {
  const std::string normal = Normalize(path);
  std::set<std::string> names;
  MutexLock lock(&mutex_);
  const auto add = [&](const std::string& other) {
    if (const std::string_view child = ChildOf(normal, other); !child.empty()) {
      names.emplace(child);
    }
  };
  if (!folders_.contains(normal)) return {};
  for (const auto& [name, file] : files_) add(name);
  for (const std::string& name : folders_) add(name);
  return {names.begin(), names.end()};
}

bool NameTable::Lock(const std::string& path) {
  const std::string normal = Normalize(path);
  MutexLock lock(&mutex_);
  return locks_.insert(normal).second;
}

void NameTable::Unlock(const std::string& path) {
  const std::string normal = Normalize(path);
  MutexLock lock(&mutex_);
  locks_.erase(normal);
}

}  // namespace nacre::rocksfs
