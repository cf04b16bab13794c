#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "util/crypto/aead.h"
#include "util/crypto/secret_key.h"
#include "util/mutex.h"

namespace nacre {

/// Aeads of one key for many threads: as many as were used at the same time.
///
/// Thread safety: all methods may be called from many threads at once.
class AeadPool {
 public:
  explicit AeadPool(const SecretKey& key) : key_(key) {}
  AeadPool(const AeadPool&) = delete;
  AeadPool& operator=(const AeadPool&) = delete;

  /// What `use`, called with an Aead of its own, returns.
  template <typename Use>
  auto With(const Use& use) EXCLUDES(mutex_) {
    std::unique_ptr<Aead> aead = Take();
    auto result = use(aead.get());
    Give(std::move(aead));
    return result;
  }

 private:
  std::unique_ptr<Aead> Take() EXCLUDES(mutex_) {
    {
      MutexLock lock(&mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Aead> aead = std::move(free_.back());
        free_.pop_back();
        return aead;
      }
    }
    return std::make_unique<Aead>(key_);
  }
  void Give(std::unique_ptr<Aead> aead) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    free_.push_back(std::move(aead));
  }

  const SecretKey key_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Aead>> free_ GUARDED_BY(mutex_);
};

}  // namespace nacre
