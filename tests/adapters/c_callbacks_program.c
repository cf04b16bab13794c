// Goal: the functions of a program in C that a database calls, by nacre/c_callbacks.h, are called
// as the header says, and what they answer counts. Method: as c_api_program.c, which calls the
// functions that are not called here. argv[1] names the pool.

#include "nacre/c.h"
#include "nacre/c_callbacks.h"
#include "tests/adapters/c_client.h"

static void Flush(nacre_t* db) {
  nacre_flushoptions_t* flush = nacre_flushoptions_create();
  nacre_flush(db, flush, &error);
  CHECK_OK(error);
  nacre_flushoptions_destroy(flush);
}

static void Compact(nacre_t* db) {
  nacre_compactoptions_t* compact = nacre_compactoptions_create();
  nacre_compact_range(db, compact, NULL, 0, NULL, 0, &error);
  CHECK_OK(error);
  nacre_compactoptions_destroy(compact);
}

static void CountDestruction(void* state) { ++*(int*)state; }

/// The longest of value and operands, in new memory; "?" cannot be merged.
static char* Longest(const char* value, size_t size, const char* const* operands,
                     const size_t* operand_sizes, int count, unsigned char* success,
                     size_t* result_size) {
  for (int i = 0; i < count; ++i) {
    if (operand_sizes[i] == 1 && operands[i][0] == '?') {
      *success = 0;
      return NULL;
    }
    if (value != NULL && size >= operand_sizes[i]) continue;
    value = operands[i];
    size = operand_sizes[i];
  }
  char* result = malloc(size + 1);
  memcpy(result, value, size);
  *success = 1;
  *result_size = size;
  return result;
}

static char* FullMerge(void* state, const char* key, size_t key_size, const char* value,
                       size_t size, const char* const* operands, const size_t* operand_sizes,
                       int count, unsigned char* success, size_t* result_size) {
  CHECK(state != NULL && key != NULL && key_size > 0);
  return Longest(value, size, operands, operand_sizes, count, success, result_size);
}

static char* PartialMerge(void* state, const char* key, size_t key_size,
                          const char* const* operands, const size_t* operand_sizes, int count,
                          unsigned char* success, size_t* result_size) {
  CHECK(state != NULL && key != NULL && key_size > 0 && count >= 2);
  return Longest(NULL, 0, operands, operand_sizes, count, success, result_size);
}

static void DeleteValue(void* state, const char* value, size_t size) {
  CHECK(state != NULL && size < 100);
  free((void*)value);
}

static const char* MergeName(void* state) {
  (void)state;
  return "test.Longest";
}

static void TestMergeOperators(void) {
  CHECK(nacre_mergeoperator_create_by_name("nonsense", &error) == NULL);
  CHECK_FAILED(nacre_code_not_found);
  nacre_options_t* own = nacre_options_create_copy(options);
  for (int i = 0; i < 2; ++i) {
    // With a function of its own for memory, and with free().
    int gone = 0;
    nacre_mergeoperator_t* merge = nacre_mergeoperator_create(
        &gone, CountDestruction, FullMerge, PartialMerge, i == 0 ? DeleteValue : NULL, MergeName);
    nacre_options_set_merge_operator(own, merge);
    nacre_mergeoperator_destroy(merge);
    nacre_t* db = nacre_open(own, "longest", &error);
    CHECK_OK(error);
    Put(db, "a", "");
    nacre_merge(db, writes, "a", 1, "xyz", 3, &error);
    nacre_merge(db, writes, "a", 1, "uv", 2, &error);
    CHECK_OK(error);
    CheckValue(db, reads, "a", "xyz");
    Flush(db);
    nacre_merge(db, writes, "a", 1, "longer", 6, &error);
    nacre_merge(db, writes, "b", 1, "alone", 5, &error);
    CHECK_OK(error);
    Flush(db);
    Compact(db);
    CheckValue(db, reads, "a", "longer");
    CheckValue(db, reads, "b", "alone");
    nacre_merge(db, writes, "c", 1, "?", 1, &error);
    CHECK_OK(error);
    size_t size = 0;
    CHECK(nacre_get(db, reads, "c", 1, &size, &error) == NULL);
    CHECK_FAILED(nacre_code_corruption);
    nacre_delete(db, writes, "c", 1, &error);
    CHECK_OK(error);
    nacre_close(db);
    CHECK(gone == 0);
    nacre_options_set_merge_operator(own, NULL);
    CHECK(gone == 1);
  }
  nacre_options_destroy(own);
}

/// Removes values "old", and makes "new" of "change".
static unsigned char Filter(void* state, int level, const char* key, size_t key_size,
                            const char* value, size_t size, char** new_value,
                            size_t* new_value_size, unsigned char* value_changed) {
  CHECK(state != NULL && level >= 0 && key != NULL && key_size > 0);
  static char text[] = "new";
  if (size == 6 && memcmp(value, "change", 6) == 0) {
    *new_value = text;
    *new_value_size = 3;
    *value_changed = 1;
  }
  return size == 3 && memcmp(value, "old", 3) == 0;
}

static const char* FilterName(void* state) {
  (void)state;
  return "test.Filter";
}

static nacre_compactionfilter_t* MakeFilter(void* state,
                                            const nacre_compactionfiltercontext_t* context) {
  (void)nacre_compactionfiltercontext_is_full_compaction(context);
  CHECK(nacre_compactionfiltercontext_column_family_id(context) == 0);
  if (!nacre_compactionfiltercontext_is_manual_compaction(context)) return NULL;
  return nacre_compactionfilter_create(state, CountDestruction, Filter, FilterName);
}

static void CheckFilter(const nacre_options_t* own) {
  nacre_t* db = nacre_open(own, "filtered", &error);
  CHECK_OK(error);
  Put(db, "a", "old");
  Put(db, "b", "change");
  Put(db, "c", "kept");
  Flush(db);
  Compact(db);
  CheckValue(db, reads, "a", NULL);
  CheckValue(db, reads, "b", "new");
  CheckValue(db, reads, "c", "kept");
  nacre_close(db);
}

static void TestFilters(void) {
  int gone = 0;
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_compactionfilter_t* filter =
      nacre_compactionfilter_create(&gone, CountDestruction, Filter, FilterName);
  nacre_options_set_compaction_filter(own, filter);
  CheckFilter(own);
  nacre_options_set_compaction_filter(own, NULL);
  nacre_compactionfilter_destroy(filter);
  CHECK(gone == 1);
  nacre_compactionfilterfactory_t* factory =
      nacre_compactionfilterfactory_create(&gone, CountDestruction, MakeFilter, FilterName);
  nacre_options_set_compaction_filter_factory(own, factory);
  nacre_compactionfilterfactory_destroy(factory);
  CheckFilter(own);
  CHECK(gone > 1);
  const int filters_gone = gone;
  nacre_options_destroy(own);
  CHECK(gone == filters_gone + 1);
}

/// What is before a colon.
static char* BeforeColon(void* state, const char* key, size_t key_size, size_t* prefix_size) {
  (void)state;
  *prefix_size = (size_t)((const char*)memchr(key, ':', key_size) - key);
  return (char*)key;
}

static unsigned char HasColon(void* state, const char* key, size_t key_size) {
  (void)state;
  return memchr(key, ':', key_size) != NULL;
}

static const char* ColonName(void* state) {
  (void)state;
  return "test.Colon";
}

/// How many keys an iterator sees from `key` on, with `transform` for the prefix.
static int CountFrom(nacre_slicetransform_t* transform, const char* key) {
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_options_set_prefix_extractor(own, transform);
  nacre_slicetransform_destroy(transform);
  nacre_t* db = nacre_open(own, "prefixes", &error);
  CHECK_OK(error);
  nacre_options_destroy(own);
  Put(db, "a:1", "");
  Put(db, "a:2", "");
  Put(db, "ab:1", "");
  Put(db, "b", "");
  nacre_readoptions_t* prefixed = nacre_readoptions_create();
  nacre_readoptions_set_prefix_same_as_start(prefixed, 1);
  nacre_iterator_t* iterator = nacre_create_iterator(db, prefixed);
  nacre_readoptions_destroy(prefixed);
  int count = 0;
  nacre_iter_seek(iterator, key, strlen(key));
  for (; nacre_iter_valid(iterator); nacre_iter_next(iterator)) ++count;
  nacre_iter_get_error(iterator, &error);
  CHECK_OK(error);
  nacre_iter_destroy(iterator);
  nacre_close(db);
  return count;
}

static void TestPrefixes(void) {
  int gone = 0;
  CHECK(CountFrom(nacre_slicetransform_create_fixed_prefix(1), "a:1") == 3);
  CHECK(CountFrom(nacre_slicetransform_create_capped_prefix(2), "a:1") == 2);
  CHECK(CountFrom(nacre_slicetransform_create_noop(), "a:1") == 1);
  CHECK(CountFrom(
            nacre_slicetransform_create(&gone, CountDestruction, BeforeColon, HasColon, ColonName),
            "a:1") == 2);
  CHECK(gone == 1);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  SetUp(argv[1]);
  nacre_options_set_create_if_missing(options, 1);
  TestMergeOperators();
  TestFilters();
  TestPrefixes();
  TearDown();
  puts("all is well");
  return 0;
}
