#include <utility>
#include <vector>

#include "adapters/c/c_error.h"
#include "adapters/c/c_types.h"
#include "adapters/common/c_memory.h"

// What reads and writes one column family, and the forms of that for the default one.

using nacre::CopyToCString;
using nacre::CopyToMalloc;
using nacre::FamilyOf;
using nacre::Slice;
using nacre::Status;
using nacre::Succeeded;

namespace {

/// Null stands for no bound.
const Slice* BoundOf(const char* key, size_t size, Slice* bound) {
  if (key == nullptr) return nullptr;
  *bound = Slice(key, size);
  return bound;
}

std::vector<Slice> SlicesOf(const char* const* keys, const size_t* key_sizes, size_t count) {
  std::vector<Slice> slices;
  slices.reserve(count);
  for (size_t i = 0; i < count; ++i) slices.emplace_back(keys[i], key_sizes[i]);
  return slices;
}

/// What was found for one of several keys.
void Answer(const Status& status, std::string_view found, char** value, size_t* value_size,
            char** error) {
  const bool ok = status.ok();
  *value = ok ? CopyToMalloc(found) : nullptr;
  *value_size = ok ? found.size() : 0;
  *error = ok || status.IsNotFound() ? nullptr : CopyToCString(status.ToString());
}

}  // namespace

void nacre_put(nacre_t* db, const nacre_writeoptions_t* options, const char* key, size_t key_size,
               const char* value, size_t value_size, char** errptr) {
  nacre_put_cf(db, options, /*family=*/nullptr, key, key_size, value, value_size, errptr);
}

void nacre_put_cf(nacre_t* db, const nacre_writeoptions_t* options,
                  nacre_column_family_handle_t* family, const char* key, size_t key_size,
                  const char* value, size_t value_size, char** errptr) {
  (void)Succeeded(
      db->rep->Put(options->rep, FamilyOf(family), Slice(key, key_size), Slice(value, value_size)),
      errptr);
}

void nacre_delete(nacre_t* db, const nacre_writeoptions_t* options, const char* key,
                  size_t key_size, char** errptr) {
  nacre_delete_cf(db, options, /*family=*/nullptr, key, key_size, errptr);
}

void nacre_delete_cf(nacre_t* db, const nacre_writeoptions_t* options,
                     nacre_column_family_handle_t* family, const char* key, size_t key_size,
                     char** errptr) {
  (void)Succeeded(db->rep->Delete(options->rep, FamilyOf(family), Slice(key, key_size)), errptr);
}

void nacre_singledelete(nacre_t* db, const nacre_writeoptions_t* options, const char* key,
                        size_t key_size, char** errptr) {
  nacre_singledelete_cf(db, options, /*family=*/nullptr, key, key_size, errptr);
}

void nacre_singledelete_cf(nacre_t* db, const nacre_writeoptions_t* options,
                           nacre_column_family_handle_t* family, const char* key, size_t key_size,
                           char** errptr) {
  (void)Succeeded(db->rep->SingleDelete(options->rep, FamilyOf(family), Slice(key, key_size)),
                  errptr);
}

void nacre_delete_range(nacre_t* db, const nacre_writeoptions_t* options, const char* begin,
                        size_t begin_size, const char* end, size_t end_size, char** errptr) {
  nacre_delete_range_cf(db, options, /*family=*/nullptr, begin, begin_size, end, end_size, errptr);
}

void nacre_delete_range_cf(nacre_t* db, const nacre_writeoptions_t* options,
                           nacre_column_family_handle_t* family, const char* begin,
                           size_t begin_size, const char* end, size_t end_size, char** errptr) {
  (void)Succeeded(db->rep->DeleteRange(options->rep, FamilyOf(family), Slice(begin, begin_size),
                                       Slice(end, end_size)),
                  errptr);
}

void nacre_merge(nacre_t* db, const nacre_writeoptions_t* options, const char* key, size_t key_size,
                 const char* operand, size_t operand_size, char** errptr) {
  nacre_merge_cf(db, options, /*family=*/nullptr, key, key_size, operand, operand_size, errptr);
}

void nacre_merge_cf(nacre_t* db, const nacre_writeoptions_t* options,
                    nacre_column_family_handle_t* family, const char* key, size_t key_size,
                    const char* operand, size_t operand_size, char** errptr) {
  (void)Succeeded(db->rep->Merge(options->rep, FamilyOf(family), Slice(key, key_size),
                                 Slice(operand, operand_size)),
                  errptr);
}

char* nacre_get(nacre_t* db, const nacre_readoptions_t* options, const char* key, size_t key_size,
                size_t* value_size, char** errptr) {
  return nacre_get_cf(db, options, /*family=*/nullptr, key, key_size, value_size, errptr);
}

char* nacre_get_cf(nacre_t* db, const nacre_readoptions_t* options,
                   nacre_column_family_handle_t* family, const char* key, size_t key_size,
                   size_t* value_size, char** errptr) {
  *value_size = 0;
  nacre::PinnableSlice value;
  const Status status = db->rep->Get(options->rep, FamilyOf(family), Slice(key, key_size), &value);
  if (status.IsNotFound() || !Succeeded(status, errptr)) return nullptr;
  *value_size = value.size();
  return CopyToMalloc(value.ToStringView());
}

nacre_pinnableslice_t* nacre_get_pinned(nacre_t* db, const nacre_readoptions_t* options,
                                        const char* key, size_t key_size, char** errptr) {
  return nacre_get_pinned_cf(db, options, /*family=*/nullptr, key, key_size, errptr);
}

nacre_pinnableslice_t* nacre_get_pinned_cf(nacre_t* db, const nacre_readoptions_t* options,
                                           nacre_column_family_handle_t* family, const char* key,
                                           size_t key_size, char** errptr) {
  auto slice = std::make_unique<nacre_pinnableslice_t>();
  const Status status =
      db->rep->Get(options->rep, FamilyOf(family), Slice(key, key_size), &slice->rep);
  if (status.IsNotFound() || !Succeeded(status, errptr)) return nullptr;
  return slice.release();
}

void nacre_multi_get(nacre_t* db, const nacre_readoptions_t* options, size_t num_keys,
                     const char* const* keys, const size_t* key_sizes, char** values,
                     size_t* value_sizes, char** errors) {
  const std::vector<Slice> slices = SlicesOf(keys, key_sizes, num_keys);
  std::vector<nacre::PinnableSlice> found(num_keys);
  std::vector<Status> statuses(num_keys);
  db->rep->MultiGet(options->rep, num_keys, slices.data(), found.data(), statuses.data());
  for (size_t i = 0; i < num_keys; ++i) {
    Answer(statuses[i], found[i].ToStringView(), &values[i], &value_sizes[i], &errors[i]);
  }
}

void nacre_multi_get_cf(nacre_t* db, const nacre_readoptions_t* options,
                        const nacre_column_family_handle_t* const* families, size_t num_keys,
                        const char* const* keys, const size_t* key_sizes, char** values,
                        size_t* value_sizes, char** errors) {
  std::vector<nacre::ColumnFamilyHandle*> of;
  of.reserve(num_keys);
  for (size_t i = 0; i < num_keys; ++i) of.push_back(FamilyOf(families[i]));
  std::vector<std::string> found;
  const std::vector<Status> statuses =
      db->rep->MultiGet(options->rep, of, SlicesOf(keys, key_sizes, num_keys), &found);
  for (size_t i = 0; i < num_keys; ++i) {
    Answer(statuses[i], found[i], &values[i], &value_sizes[i], &errors[i]);
  }
}

void nacre_flush(nacre_t* db, const nacre_flushoptions_t* options, char** errptr) {
  nacre_flush_cf(db, options, /*family=*/nullptr, errptr);
}

void nacre_flush_cf(nacre_t* db, const nacre_flushoptions_t* options,
                    nacre_column_family_handle_t* family, char** errptr) {
  (void)Succeeded(db->rep->Flush(options->rep, FamilyOf(family)), errptr);
}

void nacre_compact_range(nacre_t* db, const nacre_compactoptions_t* options, const char* begin,
                         size_t begin_size, const char* end, size_t end_size, char** errptr) {
  nacre_compact_range_cf(db, options, /*family=*/nullptr, begin, begin_size, end, end_size, errptr);
}

void nacre_compact_range_cf(nacre_t* db, const nacre_compactoptions_t* options,
                            nacre_column_family_handle_t* family, const char* begin,
                            size_t begin_size, const char* end, size_t end_size, char** errptr) {
  Slice first;
  Slice last;
  (void)Succeeded(
      db->rep->CompactRange(options->rep, FamilyOf(family), BoundOf(begin, begin_size, &first),
                            BoundOf(end, end_size, &last)),
      errptr);
}

char* nacre_property_value(nacre_t* db, const char* property) {
  return nacre_property_value_cf(db, /*family=*/nullptr, property);
}

char* nacre_property_value_cf(nacre_t* db, nacre_column_family_handle_t* family,
                              const char* property) {
  std::string value;
  return db->rep->GetProperty(FamilyOf(family), property, &value) ? CopyToCString(value) : nullptr;
}

int nacre_property_int(nacre_t* db, const char* property, uint64_t* value) {
  return nacre_property_int_cf(db, /*family=*/nullptr, property, value);
}

int nacre_property_int_cf(nacre_t* db, nacre_column_family_handle_t* family, const char* property,
                          uint64_t* value) {
  return db->rep->GetIntProperty(FamilyOf(family), property, value) ? 0 : -1;
}

void nacre_approximate_sizes(nacre_t* db, int num_ranges, const char* const* starts,
                             const size_t* start_sizes, const char* const* limits,
                             const size_t* limit_sizes, uint64_t* sizes, char** errptr) {
  nacre_approximate_sizes_cf(db, /*family=*/nullptr, num_ranges, starts, start_sizes, limits,
                             limit_sizes, sizes, errptr);
}

void nacre_approximate_sizes_cf(nacre_t* db, nacre_column_family_handle_t* family, int num_ranges,
                                const char* const* starts, const size_t* start_sizes,
                                const char* const* limits, const size_t* limit_sizes,
                                uint64_t* sizes, char** errptr) {
  std::vector<nacre::Range> ranges;
  ranges.reserve(static_cast<size_t>(num_ranges));
  for (int i = 0; i < num_ranges; ++i) {
    ranges.push_back({Slice(starts[i], start_sizes[i]), Slice(limits[i], limit_sizes[i])});
  }
  (void)Succeeded(db->rep->GetApproximateSizes(FamilyOf(family), ranges.data(), num_ranges, sizes),
                  errptr);
}
