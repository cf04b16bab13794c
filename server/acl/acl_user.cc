#include "server/acl/acl_user.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

constexpr size_t kHashDigits = size_t{2} * SHA256_DIGEST_LENGTH;

std::string HashOf(std::string_view password) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(), digest);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool IsHash(std::string_view text) {
  return text.size() == kHashDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// Joins words to one from one that begins with a parenthesis to the one that closes it.
Status JoinSelectors(std::vector<std::string>* words) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < words->size(); ++i) {
    std::string word = (*words)[i];
    if (word.starts_with('(')) {
      const std::string first = word;
      while (!word.ends_with(')')) {
        if (++i == words->size()) {
          return Status::InvalidArgument("Unmatched parenthesis in acl selector starting at '" +
                                         first + "'.");
        }
        word += " " + (*words)[i];
      }
    }
    joined.push_back(std::move(word));
  }
  *words = std::move(joined);
  return Status::OK();
}

}  // namespace

AclUser::AclUser(std::string name, uint64_t id, bool all_channels)
    : name_(std::move(name)), id_(id), root_(all_channels) {}

AclUser AclUser::Default() {
  AclUser user("default", /*id=*/0, /*all_channels=*/true);
  user.enabled_ = user.no_password_ = true;
  const AclCatalog none;
  user.root_.Apply(none, "+@all").IgnoreError();
  user.root_.Apply(none, "~*").IgnoreError();
  return user;
}

Status AclUser::Apply(const AclCatalog& catalog, std::vector<std::string> words,
                      bool all_channels) {
  NACRE_RETURN_IF_ERROR(JoinSelectors(&words));
  for (const std::string& word : words) {
    const Status applied = ApplyWord(catalog, word, all_channels);
    if (applied.ok()) continue;
    return Status::InvalidArgument("Error in ACL SETUSER modifier '" + word +
                                   "': " + std::string(applied.message()));
  }
  return Status::OK();
}

Status AclUser::ApplyWord(const AclCatalog& catalog, const std::string& word, bool all_channels) {
  if (SameWord(word, "on") || SameWord(word, "off")) {
    enabled_ = SameWord(word, "on");
  } else if (SameWord(word, "nopass")) {
    no_password_ = true;
    password_hashes_.clear();
  } else if (SameWord(word, "resetpass")) {
    no_password_ = false;
    password_hashes_.clear();
  } else if (SameWord(word, "reset")) {
    *this = AclUser(name_, id_, all_channels);
  } else if (SameWord(word, "clearselectors")) {
    selectors_.clear();
  } else if (SameWord(word, "sanitize-payload") || SameWord(word, "skip-sanitize-payload")) {
    // It is about RESTORE, which there is not.
  } else if (!word.empty() && std::string_view("><#!").find(word[0]) != std::string_view::npos) {
    return ApplyPassword(word);
  } else if (word.starts_with('(')) {
    return AddSelector(catalog, word);
  } else {
    return root_.Apply(catalog, word);
  }
  return Status::OK();
}

Status AclUser::ApplyPassword(const std::string& word) {
  const bool plain = word[0] == '>' || word[0] == '<';
  const std::string hash = plain ? HashOf(word.substr(1)) : word.substr(1);
  if (!IsHash(hash)) {
    return Status::InvalidArgument(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
        "characters");
  }
  if (word[0] == '>' || word[0] == '#') {
    password_hashes_.insert(hash);
    no_password_ = false;
  } else if (password_hashes_.erase(hash) == 0) {
    return Status::InvalidArgument(
        "The password you are trying to remove from the user does not exist");
  }
  return Status::OK();
}

Status AclUser::AddSelector(const AclCatalog& catalog, const std::string& word) {
  // Selectors begin without any right.
  AclSelector selector(/*all_channels=*/false);
  std::string_view rest = std::string_view(word).substr(1, word.size() - 2);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (end > 0) NACRE_RETURN_IF_ERROR(selector.Apply(catalog, rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  selectors_.push_back(std::move(selector));
  return Status::OK();
}

bool AclUser::Accepts(std::string_view password) const {
  if (!enabled_) return false;
  if (no_password_) return true;
  const std::string hash = HashOf(password);
  bool accepted = false;
  for (const std::string& each : password_hashes_) {
    accepted |= CRYPTO_memcmp(each.data(), hash.data(), kHashDigits) == 0;
  }
  return accepted;
}

AclDenial AclUser::Check(const AclRequest& request) const {
  AclDenial denial = root_.Check(request);
  for (size_t i = 0; i < selectors_.size() && denial.denied(); ++i) {
    AclDenial other = selectors_[i].Check(request);
    if (!other.denied() || other.Behind(denial)) denial = std::move(other);
  }
  return denial;
}

bool AclUser::MayUseChannel(std::string_view channel, bool pattern) const {
  return root_.MayUseChannel(channel, pattern) ||
         std::ranges::any_of(selectors_, [&](const AclSelector& selector) {
           return selector.MayUseChannel(channel, pattern);
         });
}

std::string AclUser::Describe() const {
  std::string text = "user " + name_ + (enabled_ ? " on" : " off");
  if (no_password_) text += " nopass";
  for (const std::string& hash : password_hashes_) text += " #" + hash;
  text += " " + root_.Describe();
  for (const AclSelector& selector : selectors_) text += " (" + selector.Describe() + ")";
  return text;
}

}  // namespace nacre::server
