#pragma once

#include "nacre/write_batch.h"

namespace nacre {

/// Hands the updates of a batch to functions of C.
/// Thread safety: none.
class CallbackHandler final : public WriteBatch::Handler {
 public:
  using PutFunction = void (*)(void* state, const char* key, size_t key_size, const char* value,
                               size_t value_size);
  using DeleteFunction = void (*)(void* state, const char* key, size_t key_size);

  CallbackHandler(void* state, PutFunction put, DeleteFunction deleted)
      : state_(state), put_(put), deleted_(deleted) {}

  void Put(const Slice& key, const Slice& value) override {
    put_(state_, key.data(), key.size(), value.data(), value.size());
  }
  void Delete(const Slice& key) override { deleted_(state_, key.data(), key.size()); }

 private:
  void* const state_;
  const PutFunction put_;
  const DeleteFunction deleted_;
};

}  // namespace nacre
