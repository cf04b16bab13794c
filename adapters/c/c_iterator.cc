#include <utility>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"

using nacre::Slice;
using nacre::Succeeded;

nacre_iterator_t* nacre_create_iterator(nacre_t* db, const nacre_readoptions_t* options) {
  return nacre_create_iterator_cf(db, options, /*family=*/nullptr);
}

nacre_iterator_t* nacre_create_iterator_cf(nacre_t* db, const nacre_readoptions_t* options,
                                           nacre_column_family_handle_t* family) {
  auto iterator = std::make_unique<nacre_iterator_t>();
  nacre::ReadOptions read_options = options->rep;
  if (options->lower != nullptr) {
    iterator->lower = *options->lower;
    iterator->lower_bound = iterator->lower;
    read_options.iterate_lower_bound = &iterator->lower_bound;
  }
  if (options->upper != nullptr) {
    iterator->upper = *options->upper;
    iterator->upper_bound = iterator->upper;
    read_options.iterate_upper_bound = &iterator->upper_bound;
  }
  iterator->rep = db->rep->NewIterator(read_options, nacre::FamilyOf(family));
  return iterator.release();
}

void nacre_iter_destroy(nacre_iterator_t* iterator) {
  std::unique_ptr<nacre_iterator_t> destroyed(iterator);
}

unsigned char nacre_iter_valid(const nacre_iterator_t* iterator) {
  return iterator->rep->Valid() ? 1 : 0;
}

void nacre_iter_seek_to_first(nacre_iterator_t* iterator) { iterator->rep->SeekToFirst(); }

void nacre_iter_seek_to_last(nacre_iterator_t* iterator) { iterator->rep->SeekToLast(); }

void nacre_iter_seek(nacre_iterator_t* iterator, const char* key, size_t key_size) {
  iterator->rep->Seek(Slice(key, key_size));
}

void nacre_iter_seek_for_prev(nacre_iterator_t* iterator, const char* key, size_t key_size) {
  iterator->rep->SeekForPrev(Slice(key, key_size));
}

void nacre_iter_next(nacre_iterator_t* iterator) { iterator->rep->Next(); }

void nacre_iter_prev(nacre_iterator_t* iterator) { iterator->rep->Prev(); }

const char* nacre_iter_key(const nacre_iterator_t* iterator, size_t* key_size) {
  const Slice key = iterator->rep->key();
  *key_size = key.size();
  return key.data();
}

const char* nacre_iter_value(const nacre_iterator_t* iterator, size_t* value_size) {
  const Slice value = iterator->rep->value();
  *value_size = value.size();
  return value.data();
}

void nacre_iter_get_error(const nacre_iterator_t* iterator, char** errptr) {
  (void)Succeeded(iterator->rep->status(), errptr);
}
