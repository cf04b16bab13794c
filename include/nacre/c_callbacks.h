#pragma once

#include "nacre/c.h"

// What a database calls while it works, for C: merge operators, compaction filters and prefixes, as
// functions of the program's own or Nacre's; and what it counts. Manners are those of nacre/c.h.
//
// `state` is passed to each function. `destructor`, which may be null, is called with it when
// nothing uses the object any more. `name` answers a string that lives as long as the object. The
// functions are called from many threads at once, unless something else is said; memory nodes do
// not know them, so that this process runs the compactions that need them.

#ifdef __cplusplus
extern "C" {
#endif

// ---- Merge operators (nacre/merge_operator.h) ------------------------------------------------

/// Nacre's own, which memory nodes know: "uint64add", "stringappend", "stringappend:SEPARATOR".
/// Null, and "NotFound", for another name.
nacre_mergeoperator_t* nacre_mergeoperator_create_by_name(const char* name, char** errptr);
/// `full_merge` answers the value that the operands make of `existing_value` (null: there is none),
/// `partial_merge` one operand in place of several; null and `*success` 0 if that cannot be done.
/// What they answer is given back by `delete_value`; if that is null, by free().
nacre_mergeoperator_t* nacre_mergeoperator_create(
    void* state, void (*destructor)(void* state),
    char* (*full_merge)(void* state, const char* key, size_t key_size, const char* existing_value,
                        size_t existing_value_size, const char* const* operands,
                        const size_t* operand_sizes, int num_operands, unsigned char* success,
                        size_t* new_value_size),
    char* (*partial_merge)(void* state, const char* key, size_t key_size,
                           const char* const* operands, const size_t* operand_sizes,
                           int num_operands, unsigned char* success, size_t* new_value_size),
    void (*delete_value)(void* state, const char* value, size_t value_size),
    const char* (*name)(void* state));
/// Null is allowed, here and below.
void nacre_mergeoperator_destroy(nacre_mergeoperator_t* merge_operator);

// ---- Compaction filters (nacre/compaction_filter.h) ------------------------------------------

/// `filter` answers whether the entry goes. It may change the value instead: `*value_changed` 1,
/// and `*new_value`, whose bytes stay the program's and are copied.
nacre_compactionfilter_t* nacre_compactionfilter_create(
    void* state, void (*destructor)(void* state),
    unsigned char (*filter)(void* state, int level, const char* key, size_t key_size,
                            const char* existing_value, size_t existing_value_size,
                            char** new_value, size_t* new_value_size, unsigned char* value_changed),
    const char* (*name)(void* state));
void nacre_compactionfilter_destroy(nacre_compactionfilter_t* filter);

/// `create_filter` answers a filter for one compaction, by one thread, which takes it over; or
/// null.
nacre_compactionfilterfactory_t* nacre_compactionfilterfactory_create(
    void* state, void (*destructor)(void* state),
    nacre_compactionfilter_t* (*create_filter)(void* state,
                                               const nacre_compactionfiltercontext_t* context),
    const char* (*name)(void* state));
void nacre_compactionfilterfactory_destroy(nacre_compactionfilterfactory_t* factory);
unsigned char nacre_compactionfiltercontext_is_full_compaction(
    const nacre_compactionfiltercontext_t* context);
unsigned char nacre_compactionfiltercontext_is_manual_compaction(
    const nacre_compactionfiltercontext_t* context);
uint32_t nacre_compactionfiltercontext_column_family_id(
    const nacre_compactionfiltercontext_t* context);

// ---- Prefixes of keys (nacre/slice_transform.h) ----------------------------------------------

nacre_slicetransform_t* nacre_slicetransform_create_fixed_prefix(size_t prefix_size);
nacre_slicetransform_t* nacre_slicetransform_create_capped_prefix(size_t prefix_size);
nacre_slicetransform_t* nacre_slicetransform_create_noop(void);
/// `transform` answers a part of `key`: where it begins, and `*prefix_size`.
nacre_slicetransform_t* nacre_slicetransform_create(
    void* state, void (*destructor)(void* state),
    char* (*transform)(void* state, const char* key, size_t key_size, size_t* prefix_size),
    unsigned char (*in_domain)(void* state, const char* key, size_t key_size),
    const char* (*name)(void* state));
void nacre_slicetransform_destroy(nacre_slicetransform_t* transform);

// ---- Statistics (nacre/statistics.h) ---------------------------------------------------------

/// Counts what the databases do whose options have it (`nacre_options_set_statistics`).
nacre_statistics_t* nacre_statistics_create(void);
void nacre_statistics_destroy(nacre_statistics_t* statistics);
/// A line for each counter and histogram.
char* nacre_statistics_get_string(const nacre_statistics_t* statistics);
/// Finds a counter by a name such as "rocksdb.number.keys.written". Returns 0 if there is one, else
/// -1.
int nacre_statistics_get_ticker(const nacre_statistics_t* statistics, const char* name,
                                uint64_t* count);
void nacre_statistics_reset(nacre_statistics_t* statistics, char** errptr);

#ifdef __cplusplus
}  // extern "C"
#endif
