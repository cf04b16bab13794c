#include "adapters/c/c_iterator.h"

#include <utility>
#include <vector>

#include "adapters/c/c_error.h"

using nacre::FamilyOf;
using nacre::Slice;
using nacre::Succeeded;
using nacre::WithBounds;
using nacre::Wrap;

nacre::ReadOptions nacre::WithBounds(const nacre_readoptions_t& options,
                                     std::shared_ptr<const IteratorBounds>* bounds) {
  auto copied = std::make_shared<IteratorBounds>();
  ReadOptions result = options.rep;
  if (options.lower != nullptr) {
    copied->lower = *options.lower;
    copied->lower_bound = copied->lower;
    result.iterate_lower_bound = &copied->lower_bound;
  }
  if (options.upper != nullptr) {
    copied->upper = *options.upper;
    copied->upper_bound = copied->upper;
    result.iterate_upper_bound = &copied->upper_bound;
  }
  *bounds = std::move(copied);
  return result;
}

nacre_iterator_t* nacre::Wrap(std::unique_ptr<Iterator> rep,
                              std::shared_ptr<const IteratorBounds> bounds) {
  return std::make_unique<nacre_iterator_t>(nacre_iterator_t{std::move(bounds), std::move(rep)})
      .release();
}

nacre_iterator_t* nacre_create_iterator(nacre_t* db, const nacre_readoptions_t* options) {
  return nacre_create_iterator_cf(db, options, nullptr);
}

nacre_iterator_t* nacre_create_iterator_cf(nacre_t* db, const nacre_readoptions_t* options,
                                           nacre_column_family_handle_t* family) {
  std::shared_ptr<const IteratorBounds> bounds;
  const nacre::ReadOptions with_bounds = WithBounds(*options, &bounds);
  return Wrap(db->rep->NewIterator(with_bounds, FamilyOf(family)), std::move(bounds));
}

void nacre_create_iterators(nacre_t* db, const nacre_readoptions_t* options,
                            nacre_column_family_handle_t* const* families,
                            nacre_iterator_t** iterators, size_t count, char** errptr) {
  std::shared_ptr<const IteratorBounds> bounds;
  const nacre::ReadOptions with_bounds = WithBounds(*options, &bounds);
  std::vector<nacre::ColumnFamilyHandle*> reps;
  for (size_t i = 0; i < count; ++i) reps.push_back(FamilyOf(families[i]));
  std::vector<std::unique_ptr<nacre::Iterator>> made;
  if (!Succeeded(db->rep->NewIterators(with_bounds, reps, &made), errptr)) return;
  for (size_t i = 0; i < count; ++i) iterators[i] = Wrap(std::move(made[i]), bounds);
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
