#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"
#include "server/acl/acl_command.h"
#include "server/acl/acl_user.h"
#include "util/mutex.h"

namespace nacre::server {

/// The users of a server. One that is changed is replaced; who holds the one before sees by
/// version() that there is another.
///
/// Thread safety: all methods may be called from many threads at once.
class AclTable {
 public:
  /// Has the default user, who may do everything. `catalog` outlives it.
  explicit AclTable(const AclCatalog* catalog);

  /// Changes with each change of any user.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Null: there is no such user.
  std::shared_ptr<const AclUser> Find(std::string_view name) const EXCLUDES(mutex_);
  /// The user, if it may log in with the password; else null.
  std::shared_ptr<const AclUser> LogIn(std::string_view name, std::string_view password) const;
  std::vector<std::shared_ptr<const AclUser>> All() const EXCLUDES(mutex_);

  /// Makes or changes a user: all of the words, or none. `InvalidArgument` as AclUser::Apply.
  Status Set(const std::string& name, const std::vector<std::string>& words) EXCLUDES(mutex_);
  /// Gives the default user this password, and no other one; empty: it needs none.
  void SetDefaultPassword(const std::string& password);
  bool Delete(const std::string& name) EXCLUDES(mutex_);

  /// Has the users of the file, a line "user NAME WORD..." each, in the place of all, which are
  /// gone but for the default one; that may be left out. `IOError`, or `InvalidArgument` naming the
  /// line, changes nothing.
  Status Load(const std::string& path) EXCLUDES(mutex_);
  /// Writes such a file, all or nothing.
  Status Save(const std::string& path) const;

  /// Whether new users may use all channels.
  std::atomic<bool> all_channels{false};

 private:
  using Users = std::map<std::string, std::shared_ptr<const AclUser>, std::less<>>;

  Status Parse(const std::string& path, const std::string& text, Users* users);
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  const AclCatalog* const catalog_;
  mutable Mutex mutex_;
  Users users_ GUARDED_BY(mutex_);
  std::atomic<uint64_t> version_{1};
  std::atomic<uint64_t> next_id_{1};  ///< The default user, which is never deleted, has 0.
};

}  // namespace nacre::server
