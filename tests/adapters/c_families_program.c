// Goal: families, kinds of updates and statistics of nacre/c.h and nacre/c_callbacks.h do what the
// headers say, for a program in C.
// Method: as c_api_program.c, which calls the functions that are not called here. argv[1] names the
// pool.

#include "nacre/c.h"
#include "nacre/c_callbacks.h"
#include "tests/adapters/c_client.h"

static nacre_statistics_t* statistics;
static nacre_mergeoperator_t* appends;

static const char* const kNames[2] = {"default", "more"};

static nacre_t* Open(nacre_column_family_handle_t** handles) {
  const nacre_options_t* const both[2] = {options, options};
  nacre_t* db = nacre_open_column_families(options, "shells", 2, kNames, both, handles, &error);
  CHECK_OK(error);
  return db;
}

static void Close(nacre_t* db, nacre_column_family_handle_t** handles) {
  for (int i = 0; i < 2; ++i) nacre_column_family_handle_destroy(handles[i]);
  nacre_column_family_handle_destroy(NULL);
  nacre_close(db);
}

static void PutCf(nacre_t* db, nacre_column_family_handle_t* family, const char* key,
                  const char* value) {
  nacre_put_cf(db, writes, family, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

static void CheckValueCf(nacre_t* db, nacre_column_family_handle_t* family, const char* key,
                         const char* value) {
  size_t size = 1;
  char* found = nacre_get_cf(db, reads, family, key, strlen(key), &size, &error);
  CHECK_OK(error);
  CheckText(found, size, value);
}

static void Flush(nacre_t* db, nacre_column_family_handle_t* family) {
  nacre_flushoptions_t* flush = nacre_flushoptions_create();
  nacre_flush_cf(db, flush, family, &error);
  CHECK_OK(error);
  nacre_flushoptions_destroy(flush);
}

static void Compact(nacre_t* db, nacre_column_family_handle_t* family) {
  nacre_compactoptions_t* compact = nacre_compactoptions_create();
  nacre_compact_range_cf(db, compact, family, NULL, 0, NULL, 0, &error);
  CHECK_OK(error);
  nacre_compactoptions_destroy(compact);
}

/// Families that are made, listed, opened anew and dropped.
static void TestFamilies(nacre_t* db, nacre_column_family_handle_t** handles) {
  CHECK(nacre_column_family_handle_get_id(handles[0]) == 0);
  CHECK(nacre_column_family_handle_get_id(handles[1]) == 1);
  CHECK(nacre_column_family_handle_get_id(NULL) == 0);
  size_t size = 0;
  char* name = nacre_column_family_handle_get_name(handles[1], &size);
  CheckText(name, size, "more");
  name = nacre_column_family_handle_get_name(NULL, &size);
  CheckText(name, size, "default");
  nacre_column_family_handle_t* third = nacre_create_column_family(db, options, "third", &error);
  CHECK_OK(error);
  CHECK(nacre_create_column_family(db, options, "third", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_options_t* wrong = nacre_options_create();
  nacre_options_set_compaction(wrong, 7);
  CHECK(nacre_create_column_family(db, wrong, "wrong", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  const nacre_options_t* const wrong_options[2] = {options, wrong};
  nacre_column_family_handle_t* none[2];
  CHECK(nacre_open_column_families(options, "wrong", 2, kNames, wrong_options, none, &error) ==
        NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_options_destroy(wrong);

  size_t count = 0;
  char** names = nacre_list_column_families(options, "shells", &count, &error);
  CHECK_OK(error);
  CHECK(count == 3 && strcmp(names[0], "default") == 0 && strcmp(names[2], "third") == 0);
  nacre_list_column_families_destroy(names, count);
  CHECK(nacre_list_column_families(options, "missing", &count, &error) == NULL && count == 0);
  CHECK_FAILED(nacre_code_not_found);

  PutCf(db, third, "a", "1");
  nacre_drop_column_family(db, third, &error);
  CHECK_OK(error);
  CheckValueCf(db, third, "a", "1");
  nacre_put_cf(db, writes, third, "a", 1, "2", 1, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_drop_column_family(db, third, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_drop_column_family(db, handles[0], &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_drop_column_family(db, NULL, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_column_family_handle_destroy(third);
}

/// A handle of another database, and an open that does not name all families.
static void TestWrongFamilies(nacre_t* db) {
  nacre_column_family_handle_t* handles[2];
  const nacre_options_t* const both[2] = {options, options};
  nacre_t* other = nacre_open_column_families(options, "sand", 2, kNames, both, handles, &error);
  CHECK_OK(error);
  nacre_put_cf(db, writes, handles[1], "a", 1, "1", 1, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  Close(other, handles);
  CHECK(nacre_open(options, "sand", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_destroy_db(options, "sand", &error);
  CHECK_OK(error);
}

/// A family without an operator does not merge.
static void TestMergeWithoutOperator(nacre_t* db) {
  nacre_options_t* plain = nacre_options_create();
  nacre_column_family_handle_t* family = nacre_create_column_family(db, plain, "plain", &error);
  CHECK_OK(error);
  nacre_options_destroy(plain);
  nacre_merge_cf(db, writes, family, "a", 1, "1", 1, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_drop_column_family(db, family, &error);
  CHECK_OK(error);
  nacre_column_family_handle_destroy(family);
}

static void TestRecords(nacre_t* db, nacre_column_family_handle_t* more) {
  Put(db, "a", "1");
  PutCf(db, more, "a", "2");
  CheckValue(db, reads, "a", "1");
  CheckValueCf(db, NULL, "a", "1");
  CheckValueCf(db, more, "a", "2");
  nacre_pinnableslice_t* slice = nacre_get_pinned_cf(db, reads, more, "a", 1, &error);
  CHECK_OK(error);
  size_t size = 0;
  CHECK(*nacre_pinnableslice_value(slice, &size) == '2' && size == 1);
  nacre_pinnableslice_destroy(slice);

  const nacre_column_family_handle_t* const families[3] = {NULL, more, more};
  const char* const keys[3] = {"a", "a", "b"};
  const size_t key_sizes[3] = {1, 1, 1};
  char* values[3];
  size_t value_sizes[3];
  char* errors[3];
  nacre_multi_get_cf(db, reads, families, 3, keys, key_sizes, values, value_sizes, errors);
  for (int i = 0; i < 3; ++i) CHECK_OK(errors[i]);
  CheckText(values[0], value_sizes[0], "1");
  CheckText(values[1], value_sizes[1], "2");
  CheckText(values[2], value_sizes[2], NULL);

  nacre_delete_cf(db, writes, more, "a", 1, &error);
  CHECK_OK(error);
  CheckValueCf(db, more, "a", NULL);
  CheckValue(db, reads, "a", "1");
  Put(db, "once", "1");
  PutCf(db, more, "once", "2");
  nacre_singledelete(db, writes, "once", 4, &error);
  nacre_singledelete_cf(db, writes, more, "once", 4, &error);
  CHECK_OK(error);
  CheckValue(db, reads, "once", NULL);
  CheckValueCf(db, more, "once", NULL);

  for (char c = 'p'; c <= 't'; ++c) {
    const char key[2] = {c, '\0'};
    Put(db, key, key);
    PutCf(db, more, key, key);
  }
  nacre_delete_range(db, writes, "p", 1, "r", 1, &error);
  nacre_delete_range_cf(db, writes, more, "r", 1, "t", 1, &error);
  CHECK_OK(error);
  CheckValue(db, reads, "q", NULL);
  CheckValue(db, reads, "r", "r");
  CheckValueCf(db, more, "q", "q");
  CheckValueCf(db, more, "r", NULL);
  CheckValueCf(db, more, "t", "t");
  nacre_delete_range(db, writes, "b", 1, "a", 1, &error);
  CHECK_FAILED(nacre_code_invalid_argument);

  nacre_merge(db, writes, "sum", 3, "x", 1, &error);
  nacre_merge(db, writes, "sum", 3, "yz", 2, &error);
  nacre_merge_cf(db, writes, more, "sum", 3, "w", 1, &error);
  CHECK_OK(error);
  CheckValue(db, reads, "sum", "x;yz");
  CheckValueCf(db, more, "sum", "w");
}

/// The default family has a, r, s, sum, t; the other one p, q, sum, t.
static void TestIterators(nacre_t* db, nacre_column_family_handle_t* more) {
  nacre_iterator_t* iterator = nacre_create_iterator_cf(db, reads, more);
  nacre_iter_seek_to_first(iterator);
  CheckAt(iterator, "p", "p");
  nacre_iter_destroy(iterator);

  nacre_readoptions_t* bounded = nacre_readoptions_create();
  nacre_readoptions_set_iterate_lower_bound(bounded, "q", 1);
  nacre_column_family_handle_t* const families[2] = {NULL, more};
  nacre_iterator_t* iterators[2];
  nacre_create_iterators(db, bounded, families, iterators, 2, &error);
  CHECK_OK(error);
  nacre_readoptions_destroy(bounded);
  PutCf(db, more, "late", "1");
  nacre_iter_seek_to_first(iterators[0]);
  CheckAt(iterators[0], "r", "r");
  nacre_iter_seek_to_first(iterators[1]);
  CheckAt(iterators[1], "q", "q");
  for (int i = 0; i < 2; ++i) nacre_iter_destroy(iterators[i]);

  // The first byte is the prefix.
  nacre_readoptions_t* prefixed = nacre_readoptions_create();
  nacre_readoptions_set_prefix_same_as_start(prefixed, 1);
  iterator = nacre_create_iterator(db, prefixed);
  nacre_iter_seek(iterator, "s", 1);
  CheckAt(iterator, "s", "s");
  nacre_iter_next(iterator);
  CheckAt(iterator, "sum", "x;yz");
  nacre_iter_next(iterator);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_destroy(iterator);
  nacre_readoptions_set_total_order_seek(prefixed, 1);
  iterator = nacre_create_iterator(db, prefixed);
  nacre_iter_seek(iterator, "sum", 3);
  nacre_iter_next(iterator);
  CheckAt(iterator, "t", "t");
  nacre_iter_destroy(iterator);
  nacre_readoptions_destroy(prefixed);
}

static void NotePut(void* state, uint32_t family, const char* key, size_t key_size,
                    const char* value, size_t value_size) {
  sprintf((char*)state + strlen(state), "%u+%.*s=%.*s ", family, (int)key_size, key,
          (int)value_size, value);
}

static void NoteDelete(void* state, uint32_t family, const char* key, size_t key_size) {
  sprintf((char*)state + strlen(state), "%u-%.*s ", family, (int)key_size, key);
}

static void NoteRange(void* state, uint32_t family, const char* begin, size_t begin_size,
                      const char* end, size_t end_size) {
  sprintf((char*)state + strlen(state), "%u-%.*s..%.*s ", family, (int)begin_size, begin,
          (int)end_size, end);
}

static void TestBatches(nacre_t* db, nacre_column_family_handle_t* more) {
  nacre_writebatch_t* batch = nacre_writebatch_create();
  nacre_writebatch_put_cf(batch, more, "b1", 2, "1", 1);
  nacre_writebatch_delete_cf(batch, more, "p", 1);
  nacre_writebatch_singledelete(batch, "t", 1);
  nacre_writebatch_singledelete_cf(batch, more, "t", 1);
  nacre_writebatch_delete_range(batch, "r", 1, "s", 1);
  nacre_writebatch_set_save_point(batch);
  nacre_writebatch_put(batch, "never", 5, "1", 1);
  nacre_writebatch_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  nacre_writebatch_delete_range_cf(batch, more, "q", 1, "r", 1);
  nacre_writebatch_merge(batch, "sum", 3, "b", 1);
  nacre_writebatch_set_save_point(batch);
  nacre_writebatch_merge_cf(batch, more, "sum", 3, "c", 1);
  nacre_writebatch_pop_save_point(batch, &error);
  CHECK_OK(error);
  nacre_writebatch_pop_save_point(batch, &error);
  CHECK_FAILED(nacre_code_not_found);
  nacre_writebatch_rollback_to_save_point(batch, &error);
  CHECK_FAILED(nacre_code_not_found);
  nacre_writebatch_put_log_data(batch, "for the log", 11);
  nacre_writebatch_t* other = nacre_writebatch_create();
  nacre_writebatch_put(other, "b2", 2, "2", 1);
  nacre_writebatch_append(batch, other);
  nacre_writebatch_destroy(other);
  CHECK(nacre_writebatch_count(batch) == 9);

  char seen[200] = "";
  nacre_writebatch_iterate_cf(batch, seen, NotePut, NoteDelete, NoteDelete, NoteRange, NotePut,
                              &error);
  CHECK_OK(error);
  CHECK(strcmp(seen, "1+b1=1 1-p 0-t 1-t 0-r..s 1-q..r 0+sum=b 1+sum=c 0+b2=2 ") == 0);
  seen[0] = '\0';
  nacre_writebatch_iterate_cf(batch, seen, NULL, NULL, NULL, NoteRange, NULL, &error);
  CHECK_OK(error);
  CHECK(strcmp(seen, "0-r..s 1-q..r ") == 0);

  nacre_write(db, writes, batch, &error);
  CHECK_OK(error);
  nacre_writebatch_destroy(batch);
  CheckValueCf(db, more, "b1", "1");
  CheckValueCf(db, more, "p", NULL);
  CheckValueCf(db, more, "q", NULL);
  CheckValueCf(db, more, "t", NULL);
  CheckValueCf(db, more, "sum", "w;c");
  CheckValue(db, reads, "t", NULL);
  CheckValue(db, reads, "r", NULL);
  CheckValue(db, reads, "never", NULL);
  CheckValue(db, reads, "sum", "x;yz;b");
  CheckValue(db, reads, "b2", "2");
}

static void NotePlainPut(void* state, const char* key, size_t key_size, const char* value,
                         size_t value_size) {
  NotePut(state, 0, key, key_size, value, value_size);
}

static void NotePlainDelete(void* state, const char* key, size_t key_size) {
  NoteDelete(state, 0, key, key_size);
}

/// What the older function tells of the newer kinds of updates.
static void TestPlainIteration(nacre_column_family_handle_t* more) {
  nacre_writebatch_t* batch = nacre_writebatch_create();
  nacre_writebatch_put(batch, "m", 1, "a", 1);
  nacre_writebatch_merge(batch, "m", 1, "b", 1);
  nacre_writebatch_singledelete(batch, "once", 4);
  nacre_writebatch_delete(batch, "n", 1);
  char seen[200] = "";
  nacre_writebatch_iterate(batch, seen, NotePlainPut, NotePlainDelete, &error);
  CHECK_OK(error);
  CHECK(strcmp(seen, "0+m=a 0-n ") == 0);
  nacre_writebatch_delete_range(batch, "a", 1, "b", 1);
  nacre_writebatch_iterate(batch, seen, NotePlainPut, NotePlainDelete, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_writebatch_clear(batch);
  nacre_writebatch_put_cf(batch, more, "m", 1, "x", 1);
  nacre_writebatch_iterate(batch, seen, NotePlainPut, NotePlainDelete, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_writebatch_destroy(batch);
}

static void TestTables(nacre_t* db, nacre_column_family_handle_t* more) {
  char key[16];
  for (int i = 0; i < 1000; ++i) {
    sprintf(key, "k%06d", i);
    PutCf(db, more, key, "a value of some length, so that tables have a size");
  }
  Flush(db, more);
  const char* const start = "k";
  const char* const limit = "l";
  const size_t one = 1;
  uint64_t size = 0;
  nacre_approximate_sizes_cf(db, more, 1, &start, &one, &limit, &one, &size, &error);
  CHECK_OK(error);
  CHECK(size > 10000);
  nacre_approximate_sizes_cf(db, NULL, 1, &start, &one, &limit, &one, &size, &error);
  CHECK_OK(error);
  CHECK(size == 0);
  Compact(db, more);
  CheckValueCf(db, more, "sum", "w;c");
  uint64_t ours = 0;
  uint64_t theirs = 0;
  CHECK(nacre_property_int_cf(db, more, "nacre.estimate-num-keys", &ours) == 0);
  CHECK(nacre_property_int_cf(db, NULL, "nacre.estimate-num-keys", &theirs) == 0);
  CHECK(ours > 1000 && theirs < 100);
  CHECK(nacre_property_int_cf(db, more, "nacre.nonsense", &ours) == -1);
  char* levels = nacre_property_value_cf(db, more, "nacre.levelstats");
  CHECK(levels != NULL);
  nacre_free(levels);
}

static void TestStatistics(void) {
  uint64_t count = 0;
  CHECK(nacre_statistics_get_ticker(statistics, "rocksdb.number.keys.written", &count) == 0);
  CHECK(count > 1000);
  CHECK(nacre_statistics_get_ticker(statistics, "rocksdb.nonsense", &count) == -1);
  char* text = nacre_statistics_get_string(statistics);
  CHECK(strstr(text, "rocksdb.number.keys.written") != NULL);
  nacre_free(text);
  nacre_statistics_reset(statistics, &error);
  CHECK_OK(error);
  CHECK(nacre_statistics_get_ticker(statistics, "rocksdb.number.keys.written", &count) == 0);
  CHECK(count == 0);
}

static void TestReaders(void) {
  const nacre_options_t* const both[2] = {options, options};
  nacre_column_family_handle_t* handles[2];
  nacre_t* db = nacre_open_for_read_only_column_families(options, "shells", 2, kNames, both,
                                                         handles, 0, &error);
  CHECK_OK(error);
  CheckValueCf(db, handles[1], "b1", "1");
  Close(db, handles);
  db = nacre_open_as_secondary_column_families(options, "shells", 2, kNames, both, handles, &error);
  CHECK_OK(error);
  CheckValueCf(db, handles[1], "b1", "1");
  CHECK(nacre_create_column_family(db, options, "more still", &error) == NULL);
  CHECK_FAILED(nacre_code_not_supported);
  Close(db, handles);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  SetUp(argv[1]);
  nacre_options_set_create_if_missing(options, 1);
  nacre_options_set_create_missing_column_families(options, 1);
  statistics = nacre_statistics_create();
  nacre_options_set_statistics(options, statistics);
  appends = nacre_mergeoperator_create_by_name("stringappend:;", &error);
  CHECK_OK(error);
  nacre_options_set_merge_operator(options, appends);
  nacre_slicetransform_t* prefix = nacre_slicetransform_create_fixed_prefix(1);
  nacre_options_set_prefix_extractor(options, prefix);
  nacre_slicetransform_destroy(prefix);

  nacre_column_family_handle_t* handles[2];
  nacre_t* db = Open(handles);
  TestFamilies(db, handles);
  TestWrongFamilies(db);
  TestMergeWithoutOperator(db);
  TestRecords(db, handles[1]);
  TestIterators(db, handles[1]);
  TestBatches(db, handles[1]);
  TestPlainIteration(handles[1]);
  TestTables(db, handles[1]);
  TestStatistics();
  Close(db, handles);
  TestReaders();
  db = Open(handles);
  CheckValueCf(db, handles[1], "sum", "w;c");
  Close(db, handles);

  nacre_mergeoperator_destroy(appends);
  nacre_statistics_destroy(statistics);
  TearDown();
  puts("all is well");
  return 0;
}
