#include <utility>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"
#include "adapters/common/callback_handler.h"

using nacre::FamilyOf;
using nacre::Slice;
using nacre::Status;
using nacre::Succeeded;

namespace {

/// Updates of all kinds, to functions of C that may be null.
class FamilyHandler final : public nacre::WriteBatch::Handler {
 public:
  using KeyFunction = void (*)(void* state, uint32_t family, const char* key, size_t key_size);
  using PairFunction = void (*)(void* state, uint32_t family, const char* first, size_t first_size,
                                const char* second, size_t second_size);

  void* state = nullptr;
  PairFunction put = nullptr;
  KeyFunction deleted = nullptr;
  KeyFunction single_deleted = nullptr;
  PairFunction range_deleted = nullptr;
  PairFunction merged = nullptr;

  Status PutCF(uint32_t family, const Slice& key, const Slice& value) override {
    return Tell(put, family, key, value);
  }
  Status DeleteCF(uint32_t family, const Slice& key) override { return Tell(deleted, family, key); }
  Status SingleDeleteCF(uint32_t family, const Slice& key) override {
    return Tell(single_deleted, family, key);
  }
  Status DeleteRangeCF(uint32_t family, const Slice& begin, const Slice& end) override {
    return Tell(range_deleted, family, begin, end);
  }
  Status MergeCF(uint32_t family, const Slice& key, const Slice& operand) override {
    return Tell(merged, family, key, operand);
  }

 private:
  Status Tell(KeyFunction function, uint32_t family, const Slice& key) const {
    if (function != nullptr) function(state, family, key.data(), key.size());
    return Status::OK();
  }
  Status Tell(PairFunction function, uint32_t family, const Slice& first,
              const Slice& second) const {
    if (function == nullptr) return Status::OK();
    function(state, family, first.data(), first.size(), second.data(), second.size());
    return Status::OK();
  }
};

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
  nacre_writebatch_put_cf(batch, nullptr, key, key_size, value, value_size);
}

void nacre_writebatch_put_cf(nacre_writebatch_t* batch, nacre_column_family_handle_t* family,
                             const char* key, size_t key_size, const char* value,
                             size_t value_size) {
  KeepFailure(batch,
              batch->rep.Put(FamilyOf(family), Slice(key, key_size), Slice(value, value_size)));
}

void nacre_writebatch_delete(nacre_writebatch_t* batch, const char* key, size_t key_size) {
  nacre_writebatch_delete_cf(batch, nullptr, key, key_size);
}

void nacre_writebatch_delete_cf(nacre_writebatch_t* batch, nacre_column_family_handle_t* family,
                                const char* key, size_t key_size) {
  KeepFailure(batch, batch->rep.Delete(FamilyOf(family), Slice(key, key_size)));
}

void nacre_writebatch_singledelete(nacre_writebatch_t* batch, const char* key, size_t key_size) {
  nacre_writebatch_singledelete_cf(batch, nullptr, key, key_size);
}

void nacre_writebatch_singledelete_cf(nacre_writebatch_t* batch,
                                      nacre_column_family_handle_t* family, const char* key,
                                      size_t key_size) {
  KeepFailure(batch, batch->rep.SingleDelete(FamilyOf(family), Slice(key, key_size)));
}

void nacre_writebatch_delete_range(nacre_writebatch_t* batch, const char* begin, size_t begin_size,
                                   const char* end, size_t end_size) {
  nacre_writebatch_delete_range_cf(batch, nullptr, begin, begin_size, end, end_size);
}

void nacre_writebatch_delete_range_cf(nacre_writebatch_t* batch,
                                      nacre_column_family_handle_t* family, const char* begin,
                                      size_t begin_size, const char* end, size_t end_size) {
  KeepFailure(batch, batch->rep.DeleteRange(FamilyOf(family), Slice(begin, begin_size),
                                            Slice(end, end_size)));
}

void nacre_writebatch_merge(nacre_writebatch_t* batch, const char* key, size_t key_size,
                            const char* operand, size_t operand_size) {
  nacre_writebatch_merge_cf(batch, nullptr, key, key_size, operand, operand_size);
}

void nacre_writebatch_merge_cf(nacre_writebatch_t* batch, nacre_column_family_handle_t* family,
                               const char* key, size_t key_size, const char* operand,
                               size_t operand_size) {
  KeepFailure(batch, batch->rep.Merge(FamilyOf(family), Slice(key, key_size),
                                      Slice(operand, operand_size)));
}

void nacre_writebatch_put_log_data(nacre_writebatch_t* batch, const char* blob, size_t size) {
  KeepFailure(batch, batch->rep.PutLogData(Slice(blob, size)));
}

void nacre_writebatch_append(nacre_writebatch_t* batch, const nacre_writebatch_t* other) {
  KeepFailure(batch, other->failure);
  KeepFailure(batch, batch->rep.Append(other->rep));
}

void nacre_writebatch_set_save_point(nacre_writebatch_t* batch) { batch->rep.SetSavePoint(); }

void nacre_writebatch_rollback_to_save_point(nacre_writebatch_t* batch, char** errptr) {
  (void)Succeeded(batch->rep.RollbackToSavePoint(), errptr);
}

void nacre_writebatch_pop_save_point(nacre_writebatch_t* batch, char** errptr) {
  (void)Succeeded(batch->rep.PopSavePoint(), errptr);
}

void nacre_writebatch_iterate(const nacre_writebatch_t* batch, void* state,
                              void (*put)(void* state, const char* key, size_t key_size,
                                          const char* value, size_t value_size),
                              void (*deleted)(void* state, const char* key, size_t key_size),
                              char** errptr) {
  nacre::CallbackHandler handler(state, put, deleted);
  (void)Succeeded(batch->rep.Iterate(&handler), errptr);
}

void nacre_writebatch_iterate_cf(
    const nacre_writebatch_t* batch, void* state,
    void (*put)(void* state, uint32_t family, const char* key, size_t key_size, const char* value,
                size_t value_size),
    void (*deleted)(void* state, uint32_t family, const char* key, size_t key_size),
    void (*single_deleted)(void* state, uint32_t family, const char* key, size_t key_size),
    void (*range_deleted)(void* state, uint32_t family, const char* begin, size_t begin_size,
                          const char* end, size_t end_size),
    void (*merged)(void* state, uint32_t family, const char* key, size_t key_size,
                   const char* operand, size_t operand_size),
    char** errptr) {
  FamilyHandler handler;
  handler.state = state;
  handler.put = put;
  handler.deleted = deleted;
  handler.single_deleted = single_deleted;
  handler.range_deleted = range_deleted;
  handler.merged = merged;
  (void)Succeeded(batch->rep.Iterate(&handler), errptr);
}

const char* nacre_writebatch_data(const nacre_writebatch_t* batch, size_t* size) {
  *size = batch->rep.GetDataSize();
  return batch->rep.Data().data();
}
