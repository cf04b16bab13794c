#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "rdma/handshake.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// A secret, and what its holder may do.
struct SecretTerms {
  std::string secret{};
  std::string name{};  ///< For messages.
  /// What the layer above has to say of the holder; nothing to the transport.
  std::string rights{};
  /// Whether connections made with it may change memory of this process by one-sided requests,
  /// under keys that allow as much. A listener lets no other do so, whatever keys it knows.
  bool may_write = true;
  /// No new connection is made with it. Those that there are stay.
  bool retired = false;

  bool operator==(const SecretTerms&) const = default;
};

/// What a peer has proven to know, for as long as its connection lasts.
///
/// Thread safety: all methods may be called from many threads.
class Credential {
 public:
  Credential(SecretTerms terms, SecretId id) : terms_(std::move(terms)), id_(id) {}
  Credential(const Credential&) = delete;
  Credential& operator=(const Credential&) = delete;

  /// That of all members of a pool without secrets: it may do everything.
  static std::shared_ptr<const Credential> OfEveryone();

  const std::string& secret() const { return terms_.secret; }
  const std::string& name() const { return terms_.name; }
  const std::string& rights() const { return terms_.rights; }
  bool may_write() const { return terms_.may_write; }
  const SecretTerms& terms() const { return terms_; }
  SecretId id() const { return id_; }
  /// Once true, connections made with it are to end. Relaxed: nothing is read on its strength.
  bool revoked() const { return revoked_.load(std::memory_order_relaxed); }

 private:
  friend class SecretRing;

  const SecretTerms terms_;
  const SecretId id_;
  mutable std::atomic<bool> revoked_{false};
};

/// The secrets that the listeners of a process take, and the one that it proves itself where it
/// connects: the first.
///
/// A connector says which secret it will prove by the id at the end of its nonce
/// (rdma/handshake.h). For an id that the ring has not got, a listener goes on with a secret that
/// was drawn at random and that no peer knows. So a caller cannot tell an id that is missing from a
/// proof that was wrong, and both are refused, and counted, in the same place.
///
/// Thread safety: all methods may be called from many threads.
class SecretRing {
 public:
  /// More would make a list that no operator knows.
  static constexpr size_t kMaxSecrets = 1024;

  /// `InvalidArgument` if there is none, the first is retired, two are the same or have the same
  /// id, or there are too many; `IOError` if no random numbers, or no hashes, are to be had.
  static Status Create(std::vector<SecretTerms> terms, std::shared_ptr<SecretRing>* ring);
  /// A ring of that one secret, whose holders may do everything.
  static Status OfOne(const std::string& secret, std::shared_ptr<SecretRing>* ring) {
    return Create({{.secret = secret}}, ring);
  }

  /// Takes these from now on. The credential of a secret whose terms are as they were, whether
  /// retired or not, stays; any other is revoked, also where only its rights have changed. On
  /// failure nothing has changed.
  Status Replace(std::vector<SecretTerms> terms) EXCLUDES(mutex_);

  /// What this process proves where it connects.
  std::shared_ptr<const Credential> own() const EXCLUDES(mutex_);
  /// What a peer has to prove that names this id: of a retired secret what no peer knows. Never
  /// null.
  std::shared_ptr<const Credential> Find(SecretId id) const EXCLUDES(mutex_);
  /// The number of secrets, retired ones included.
  size_t size() const EXCLUDES(mutex_);

 private:
  explicit SecretRing(std::shared_ptr<const Credential> unknown) : unknown_(std::move(unknown)) {}

  const std::shared_ptr<const Credential> unknown_;
  struct Entry {
    std::shared_ptr<const Credential> credential;
    bool retired = false;
  };

  mutable Mutex mutex_;
  std::map<SecretId, Entry> entries_ GUARDED_BY(mutex_);
  std::shared_ptr<const Credential> own_ GUARDED_BY(mutex_);
};

}  // namespace nacre::rdma
