#include "rdma/secret_ring.h"

#include <utility>

#include "util/never_destroyed.h"

namespace nacre::rdma {

namespace {

std::string NameOf(const SecretTerms& terms) {
  return terms.name.empty() ? "a secret" : "secret '" + terms.name + "'";
}

}  // namespace

std::shared_ptr<const Credential> Credential::OfEveryone() {
  static const NeverDestroyed<std::shared_ptr<const Credential>> everyone(
      std::make_shared<const Credential>(SecretTerms{}, SecretId{}));
  return *everyone;
}

Status SecretRing::Create(std::vector<SecretTerms> terms, std::shared_ptr<SecretRing>* ring) {
  // Two nonces of 16 bytes, so that no peer can guess it.
  Nonce halves[2];
  SecretTerms unknown{.may_write = false};
  for (Nonce& half : halves) {
    NACRE_RETURN_IF_ERROR(DrawNonce(&half));
    unknown.secret.append(half.data(), half.size());
  }
  std::shared_ptr<SecretRing> made(
      new SecretRing(std::make_shared<const Credential>(std::move(unknown), SecretId{})));
  NACRE_RETURN_IF_ERROR(made->Replace(std::move(terms)));
  *ring = std::move(made);
  return Status::OK();
}

Status SecretRing::Replace(std::vector<SecretTerms> terms) {
  if (terms.empty()) return Status::InvalidArgument("there is no secret");
  if (terms.size() > kMaxSecrets) {
    return Status::InvalidArgument(std::to_string(terms.size()) + " secrets: at most " +
                                   std::to_string(kMaxSecrets));
  }
  if (terms[0].retired) return Status::InvalidArgument(NameOf(terms[0]) + " is retired");
  std::map<SecretId, Entry> wanted;
  SecretId own = 0;
  for (SecretTerms& each : terms) {
    SecretId id;
    NACRE_RETURN_IF_ERROR(IdOfSecret(each.secret, &id));
    if (wanted.empty()) own = id;
    const bool retired = std::exchange(each.retired, false);
    auto credential = std::make_shared<const Credential>(std::move(each), id);
    const auto [other, added] = wanted.emplace(id, Entry{credential, retired});
    if (added) continue;
    const SecretTerms& first = other->second.credential->terms();
    return Status::InvalidArgument(NameOf(first) + " and " + NameOf(credential->terms()) +
                                   (first.secret == credential->secret()
                                        ? " are the same"
                                        : " have the same id: draw one anew"));
  }
  MutexLock lock(&mutex_);
  for (const auto& [id, before] : entries_) {
    const auto now = wanted.find(id);
    if (now != wanted.end() && now->second.credential->terms() == before.credential->terms()) {
      now->second.credential = before.credential;
    } else {
      before.credential->revoked_.store(true, std::memory_order_relaxed);
    }
  }
  own_ = wanted.at(own).credential;
  entries_ = std::move(wanted);
  return Status::OK();
}

std::shared_ptr<const Credential> SecretRing::own() const {
  MutexLock lock(&mutex_);
  return own_;
}

std::shared_ptr<const Credential> SecretRing::Find(SecretId id) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() || found->second.retired ? unknown_ : found->second.credential;
}

size_t SecretRing::size() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace nacre::rdma
