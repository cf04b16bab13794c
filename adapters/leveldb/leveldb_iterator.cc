#include <utility>

#include "adapters/common/callback_handler.h"
#include "adapters/leveldb/leveldb_error.h"
#include "adapters/leveldb/leveldb_types.h"

// Iterators and batches.

using nacre::Slice;
using nacre::Status;
using nacre::Succeeded;

namespace {

void KeepFailure(leveldb_writebatch_t* batch, Status status) {
  if (batch->failure.ok()) batch->failure = std::move(status);
}

/// Adds the updates of one batch to another.
class Appender final : public nacre::WriteBatch::Handler {
 public:
  explicit Appender(leveldb_writebatch_t* destination) : destination_(destination) {}
  void Put(const Slice& key, const Slice& value) override {
    KeepFailure(destination_, destination_->rep.Put(key, value));
  }
  void Delete(const Slice& key) override {
    KeepFailure(destination_, destination_->rep.Delete(key));
  }

 private:
  leveldb_writebatch_t* const destination_;
};

}  // namespace

leveldb_iterator_t* leveldb_create_iterator(leveldb_t* db, const leveldb_readoptions_t* options) {
  return std::make_unique<leveldb_iterator_t>(
             leveldb_iterator_t{db->rep->NewIterator(options->rep)})
      .release();
}

void leveldb_iter_destroy(leveldb_iterator_t* iterator) {
  std::unique_ptr<leveldb_iterator_t> destroyed(iterator);
}

uint8_t leveldb_iter_valid(const leveldb_iterator_t* iterator) {
  return iterator->rep->Valid() ? 1 : 0;
}

void leveldb_iter_seek_to_first(leveldb_iterator_t* iterator) { iterator->rep->SeekToFirst(); }

void leveldb_iter_seek_to_last(leveldb_iterator_t* iterator) { iterator->rep->SeekToLast(); }

void leveldb_iter_seek(leveldb_iterator_t* iterator, const char* k, size_t klen) {
  iterator->rep->Seek(Slice(k, klen));
}

void leveldb_iter_next(leveldb_iterator_t* iterator) { iterator->rep->Next(); }

void leveldb_iter_prev(leveldb_iterator_t* iterator) { iterator->rep->Prev(); }

const char* leveldb_iter_key(const leveldb_iterator_t* iterator, size_t* klen) {
  const Slice key = iterator->rep->key();
  *klen = key.size();
  return key.data();
}

const char* leveldb_iter_value(const leveldb_iterator_t* iterator, size_t* vlen) {
  const Slice value = iterator->rep->value();
  *vlen = value.size();
  return value.data();
}

void leveldb_iter_get_error(const leveldb_iterator_t* iterator, char** errptr) {
  (void)Succeeded(iterator->rep->status(), errptr);
}

leveldb_writebatch_t* leveldb_writebatch_create(void) {
  return std::make_unique<leveldb_writebatch_t>().release();
}

void leveldb_writebatch_destroy(leveldb_writebatch_t* batch) {
  std::unique_ptr<leveldb_writebatch_t> destroyed(batch);
}

void leveldb_writebatch_clear(leveldb_writebatch_t* batch) {
  batch->rep.Clear();
  batch->failure = Status::OK();
}

void leveldb_writebatch_put(leveldb_writebatch_t* batch, const char* key, size_t klen,
                            const char* val, size_t vlen) {
  KeepFailure(batch, batch->rep.Put(Slice(key, klen), Slice(val, vlen)));
}

void leveldb_writebatch_delete(leveldb_writebatch_t* batch, const char* key, size_t klen) {
  KeepFailure(batch, batch->rep.Delete(Slice(key, klen)));
}

void leveldb_writebatch_iterate(const leveldb_writebatch_t* batch, void* state,
                                void (*put)(void*, const char* k, size_t klen, const char* v,
                                            size_t vlen),
                                void (*deleted)(void*, const char* k, size_t klen)) {
  nacre::CallbackHandler handler(state, put, deleted);
  // Well formed: only the functions above have written it.
  batch->rep.Iterate(&handler).IgnoreError();
}

void leveldb_writebatch_append(leveldb_writebatch_t* destination,
                               const leveldb_writebatch_t* source) {
  const nacre::WriteBatch updates = source->rep;  // They may be the same.
  Appender appender(destination);
  updates.Iterate(&appender).IgnoreError();
  KeepFailure(destination, source->failure);
}
