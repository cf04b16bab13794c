#include <utility>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"
#include "adapters/common/callback_handler.h"

using nacre::Slice;
using nacre::Status;
using nacre::Succeeded;

namespace {

void KeepFailure(nacre_writebatch_t* batch, Status status) {
  if (batch->failure.ok()) batch->failure = std::move(status);
}

}  // namespace

nacre_writebatch_t* nacre_writebatch_create(void) {
  return std::make_unique<nacre_writebatch_t>().release();
}

nacre_writebatch_t* nacre_writebatch_create_from(const char* data, size_t size) {
  auto batch = std::make_unique<nacre_writebatch_t>();
  batch->rep = nacre::WriteBatch(std::string(data, size));
  return batch.release();
}

void nacre_writebatch_destroy(nacre_writebatch_t* batch) {
  std::unique_ptr<nacre_writebatch_t> destroyed(batch);
}

void nacre_writebatch_clear(nacre_writebatch_t* batch) {
  batch->rep.Clear();
  batch->failure = Status::OK();
}

int nacre_writebatch_count(const nacre_writebatch_t* batch) {
  return static_cast<int>(batch->rep.Count());
}

void nacre_writebatch_put(nacre_writebatch_t* batch, const char* key, size_t key_size,
                          const char* value, size_t value_size) {
  KeepFailure(batch, batch->rep.Put(Slice(key, key_size), Slice(value, value_size)));
}

void nacre_writebatch_delete(nacre_writebatch_t* batch, const char* key, size_t key_size) {
  KeepFailure(batch, batch->rep.Delete(Slice(key, key_size)));
}

void nacre_writebatch_iterate(const nacre_writebatch_t* batch, void* state,
                              void (*put)(void* state, const char* key, size_t key_size,
                                          const char* value, size_t value_size),
                              void (*deleted)(void* state, const char* key, size_t key_size),
                              char** errptr) {
  nacre::CallbackHandler handler(state, put, deleted);
  (void)Succeeded(batch->rep.Iterate(&handler), errptr);
}

const char* nacre_writebatch_data(const nacre_writebatch_t* batch, size_t* size) {
  *size = batch->rep.GetDataSize();
  return batch->rep.Data().data();
}
