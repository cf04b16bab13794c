#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"
#include "server/acl/acl_command.h"
#include "server/acl/acl_selector.h"

namespace nacre::server {

/// One that clients log in as: passwords, of which only hashes are kept, and rights. A request is
/// allowed if one of the user's selectors allows all of it.
///
/// Thread safety: const methods only may be called from many threads at once.
class AclUser {
 public:
  /// A new user can do nothing, and cannot log in; `all_channels` is as AclSelector has it. `id`
  /// tells it from earlier ones of the name.
  AclUser(std::string name, uint64_t id, bool all_channels);
  /// The user that clients are before they log in; may do everything, without a password.
  static AclUser Default();

  /// Applies words such as "on", ">password" or "~key*" in their order; `InvalidArgument` says in
  /// Redis's words what is wrong with which, and the user may have been changed in part.
  Status Apply(const AclCatalog& catalog, std::vector<std::string> words, bool all_channels);

  const std::string& name() const { return name_; }
  uint64_t id() const { return id_; }
  bool enabled() const { return enabled_; }
  bool no_password() const { return no_password_; }
  /// Hexadecimal SHA-256.
  const std::set<std::string>& password_hashes() const { return password_hashes_; }
  /// Whether it may log in with the password. Takes as long for a wrong one as for a right one.
  bool Accepts(std::string_view password) const;
  /// Everything is allowed.
  bool unrestricted() const { return root_.unrestricted(); }

  AclDenial Check(const AclRequest& request) const;
  bool MayUseChannel(std::string_view channel, bool pattern) const;

  const AclSelector& root() const { return root_; }
  const std::vector<AclSelector>& selectors() const { return selectors_; }
  /// "user NAME on ...", from which Apply makes the same user.
  std::string Describe() const;

 private:
  Status ApplyWord(const AclCatalog& catalog, const std::string& word, bool all_channels);
  Status ApplyPassword(const std::string& word);
  Status AddSelector(const AclCatalog& catalog, const std::string& word);

  std::string name_;
  uint64_t id_;
  bool enabled_ = false;
  bool no_password_ = false;
  std::set<std::string> password_hashes_;
  AclSelector root_;
  std::vector<AclSelector> selectors_;
};

}  // namespace nacre::server
