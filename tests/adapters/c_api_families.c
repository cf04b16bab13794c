// Goal and method: as c_api_program.c, of which it is the part about column families, merges and
// the other kinds of updates.

#include "tests/adapters/c_api_program.h"

/// `value` null: there is no such key.
static void CheckFamily(nacre_t* db, nacre_column_family_handle_t* family, const char* key,
                        const char* value) {
  size_t size = 1;
  char* found = nacre_get_cf(db, reads, family, key, strlen(key), &size, &error);
  CHECK_OK(error);
  CHECK((found == NULL) == (value == NULL));
  CHECK(size == (value == NULL ? 0 : strlen(value)));
  CHECK(value == NULL || memcmp(found, value, size) == 0);
  nacre_free(found);
}

static void TestUpdatesOfFamilies(nacre_t* db, nacre_column_family_handle_t* fruit) {
  nacre_put_cf(db, writes, fruit, "apple", 5, "1", 1, &error);
  nacre_put_cf(db, writes, NULL, "apple", 5, "default", 7, &error);
  CHECK_OK(error);
  CheckFamily(db, fruit, "apple", "1");
  CheckFamily(db, NULL, "apple", "default");
  CheckValue(db, reads, "apple", "default");
  nacre_merge_cf(db, writes, fruit, "apple", 5, "2", 1, &error);
  nacre_merge(db, writes, "apple", 5, "plain", 5, &error);
  CHECK_OK(error);
  CheckFamily(db, fruit, "apple", "1;2");
  CheckFamily(db, NULL, "apple", "default,plain");
  nacre_delete_cf(db, writes, fruit, "apple", 5, &error);
  CHECK_OK(error);
  CheckFamily(db, fruit, "apple", NULL);
  nacre_put_cf(db, writes, fruit, "once", 4, "1", 1, &error);
  nacre_put(db, writes, "once", 4, "1", 1, &error);
  nacre_singledelete_cf(db, writes, fruit, "once", 4, &error);
  CHECK_OK(error);
  CheckFamily(db, fruit, "once", NULL);
  CheckFamily(db, NULL, "once", "1");
  nacre_singledelete(db, writes, "once", 4, &error);
  CHECK_OK(error);
  CheckFamily(db, NULL, "once", NULL);
  nacre_put_cf(db, writes, fruit, "b1", 2, "1", 1, &error);
  nacre_put_cf(db, writes, fruit, "b2", 2, "2", 1, &error);
  nacre_put_cf(db, writes, fruit, "c", 1, "3", 1, &error);
  nacre_delete_range_cf(db, writes, fruit, "b1", 2, "c", 1, &error);
  CHECK_OK(error);
  CheckFamily(db, fruit, "b1", NULL);
  CheckFamily(db, fruit, "b2", NULL);
  CheckFamily(db, fruit, "c", "3");
  nacre_delete_range_cf(db, writes, fruit, "c", 1, "b", 1, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
}

static void TestBatchesOfFamilies(nacre_t* db, nacre_column_family_handle_t* fruit) {
  nacre_writebatch_t* batch = nacre_writebatch_create();
  nacre_writebatch_put(batch, "m", 1, "a", 1);
  nacre_writebatch_merge(batch, "m", 1, "b", 1);
  nacre_writebatch_put(batch, "once", 4, "1", 1);
  nacre_writebatch_singledelete(batch, "once", 4);
  char seen[100] = "";
  nacre_writebatch_iterate(batch, seen, NotePut, NoteDelete, &error);
  CHECK_OK(error);
  CHECK(strcmp(seen, "+m=a+once=1") == 0);
  nacre_writebatch_delete_range(batch, "apple", 5, "b", 1);
  nacre_writebatch_iterate(batch, seen, NotePut, NoteDelete, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_writebatch_put_cf(batch, fruit, "m", 1, "x", 1);
  nacre_writebatch_merge_cf(batch, fruit, "m", 1, "y", 1);
  nacre_writebatch_put_cf(batch, fruit, "n", 1, "z", 1);
  nacre_writebatch_delete_cf(batch, fruit, "n", 1);
  nacre_writebatch_put_cf(batch, fruit, "once", 4, "1", 1);
  nacre_writebatch_singledelete_cf(batch, fruit, "once", 4);
  nacre_writebatch_delete_range_cf(batch, fruit, "c", 1, "d", 1);
  CHECK(nacre_writebatch_count(batch) == 12);
  nacre_write(db, writes, batch, &error);
  CHECK_OK(error);
  nacre_writebatch_destroy(batch);
  CheckFamily(db, NULL, "m", "a,b");
  CheckFamily(db, NULL, "once", NULL);
  CheckFamily(db, NULL, "apple", NULL);
  CheckFamily(db, fruit, "m", "x;y");
  CheckFamily(db, fruit, "n", NULL);
  CheckFamily(db, fruit, "once", NULL);
  CheckFamily(db, fruit, "c", NULL);
}

/// The default family has m=a,b; `fruit` has m=x;y.
static void TestReadsOfFamilies(nacre_t* db, nacre_column_family_handle_t* fruit) {
  const char* keys[3] = {"m", "m", "n"};
  const size_t sizes[3] = {1, 1, 1};
  const nacre_column_family_handle_t* families[3] = {fruit, NULL, fruit};
  char* values[3];
  char* errors[3];
  size_t value_sizes[3];
  nacre_multi_get_cf(db, reads, families, 3, keys, sizes, values, value_sizes, errors);
  for (int i = 0; i < 3; ++i) CHECK_OK(errors[i]);
  CHECK(value_sizes[0] == 3 && memcmp(values[0], "x;y", 3) == 0);
  CHECK(value_sizes[1] == 3 && memcmp(values[1], "a,b", 3) == 0);
  CHECK(value_sizes[2] == 0 && values[2] == NULL);
  for (int i = 0; i < 3; ++i) nacre_free(values[i]);
  nacre_pinnableslice_t* pinned = nacre_get_pinned_cf(db, reads, fruit, "m", 1, &error);
  CHECK_OK(error);
  size_t size = 0;
  CHECK(memcmp(nacre_pinnableslice_value(pinned, &size), "x;y", 3) == 0 && size == 3);
  nacre_pinnableslice_destroy(pinned);
  CHECK(nacre_get_pinned_cf(db, reads, fruit, "n", 1, &error) == NULL);
  CHECK_OK(error);
  nacre_iterator_t* iterator = nacre_create_iterator_cf(db, reads, fruit);
  nacre_iter_seek_to_first(iterator);
  CheckAt(iterator, "m", "x;y");
  nacre_iter_next(iterator);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_destroy(iterator);

  nacre_flushoptions_t* flush = nacre_flushoptions_create();
  nacre_flush_cf(db, flush, fruit, &error);
  CHECK_OK(error);
  nacre_flushoptions_destroy(flush);
  const char* starts[1] = {"m"};
  const char* limits[1] = {"n"};
  uint64_t bytes = 0;
  nacre_approximate_sizes_cf(db, fruit, 1, starts, sizes, limits, sizes, &bytes, &error);
  CHECK_OK(error);
  CHECK(bytes > 0);
  nacre_compactoptions_t* compact = nacre_compactoptions_create();
  nacre_compact_range_cf(db, compact, fruit, NULL, 0, NULL, 0, &error);
  CHECK_OK(error);
  nacre_compactoptions_destroy(compact);
  CheckFamily(db, fruit, "m", "x;y");
  uint64_t number = 0;
  CHECK(nacre_property_int_cf(db, fruit, "nacre.estimate-num-keys", &number) == 0 && number == 1);
  CHECK(nacre_property_int_cf(db, fruit, "nacre.nonsense", &number) == -1);
  char* stats = nacre_property_value_cf(db, fruit, "nacre.cfstats");
  CHECK(stats != NULL);
  nacre_free(stats);
}

/// Of a database that its owner, who has the options, has open.
static void TestFollowersOfFamilies(const nacre_options_t* const* of_families) {
  const char* names[2] = {"default", "fruit"};
  nacre_column_family_handle_t* handles[2];
  nacre_t* frozen = nacre_open_for_read_only_column_families(options, "basket", 2, names,
                                                             of_families, handles, 0, &error);
  CHECK_OK(error);
  CheckFamily(frozen, handles[1], "m", "x;y");
  CHECK(nacre_create_column_family(frozen, options, "more", &error) == NULL);
  CHECK_FAILED(nacre_code_not_supported);
  for (int i = 0; i < 2; ++i) nacre_column_family_handle_destroy(handles[i]);
  nacre_close(frozen);
  nacre_t* follower = nacre_open_as_secondary_column_families(options, "basket", 2, names,
                                                              of_families, handles, &error);
  CHECK_OK(error);
  CheckFamily(follower, handles[1], "m", "x;y");
  for (int i = 0; i < 2; ++i) nacre_column_family_handle_destroy(handles[i]);
  nacre_close(follower);
}

static void TestDroppedFamily(nacre_t* db, nacre_column_family_handle_t* other) {
  nacre_column_family_handle_t* made = nacre_create_column_family(db, options, "made", &error);
  CHECK_OK(error);
  CHECK(nacre_column_family_handle_get_id(made) > 0);
  CHECK(nacre_create_column_family(db, options, "made", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  // It has no operator.
  nacre_merge_cf(db, writes, made, "a", 1, "1", 1, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_put_cf(db, writes, made, "a", 1, "1", 1, &error);
  CHECK_OK(error);
  nacre_drop_column_family(db, made, &error);
  CHECK_OK(error);
  CheckFamily(db, made, "a", "1");
  nacre_put_cf(db, writes, made, "a", 1, "2", 1, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_drop_column_family(db, made, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_column_family_handle_destroy(made);
  nacre_drop_column_family(db, NULL, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_put_cf(db, writes, other, "a", 1, "1", 1, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
}

void TestFamilies(nacre_t* pearls) {
  nacre_options_t* appending = nacre_options_create_copy(options);
  nacre_options_set_create_if_missing(appending, 1);
  nacre_options_set_create_missing_column_families(appending, 1);
  nacre_options_t* of_fruit = nacre_options_create();
  nacre_options_set_merge_operator(appending, "stringappend");
  nacre_options_set_merge_operator(of_fruit, "uint64add");
  nacre_options_set_merge_operator(of_fruit, NULL);
  nacre_options_set_merge_operator(of_fruit, "stringappend:;");
  const char* names[2] = {"default", "fruit"};
  const nacre_options_t* of_families[2] = {appending, of_fruit};
  nacre_options_t* wrong = nacre_options_create();
  nacre_options_set_merge_operator(wrong, "subtract");
  const nacre_options_t* none_such[2] = {appending, wrong};
  nacre_column_family_handle_t* handles[2];
  CHECK(nacre_open_column_families(appending, "basket", 2, names, none_such, handles, &error) ==
        NULL);
  CHECK(strstr(error, "subtract") != NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_t* db =
      nacre_open_column_families(appending, "basket", 2, names, of_families, handles, &error);
  CHECK_OK(error);
  CHECK(nacre_create_column_family(db, wrong, "wrong", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_options_destroy(wrong);
  nacre_column_family_handle_t* fruit = handles[1];
  CHECK(nacre_column_family_handle_get_id(handles[0]) == 0);
  CHECK(nacre_column_family_handle_get_id(NULL) == 0);
  size_t size = 0;
  char* name = nacre_column_family_handle_get_name(fruit, &size);
  CHECK(size == 5 && strcmp(name, "fruit") == 0);
  nacre_free(name);
  name = nacre_column_family_handle_get_name(NULL, &size);
  CHECK(size == 7 && strcmp(name, "default") == 0);
  nacre_free(name);
  TestUpdatesOfFamilies(db, fruit);
  TestBatchesOfFamilies(db, fruit);
  TestReadsOfFamilies(db, fruit);
  TestFollowersOfFamilies(of_families);
  nacre_column_family_handle_t* other = nacre_create_column_family(pearls, options, "o", &error);
  CHECK_OK(error);
  TestDroppedFamily(db, other);
  nacre_drop_column_family(pearls, other, &error);
  CHECK_OK(error);
  nacre_column_family_handle_destroy(other);
  nacre_column_family_handle_destroy(NULL);
  for (int i = 0; i < 2; ++i) nacre_column_family_handle_destroy(handles[i]);
  nacre_close(db);

  size_t count = 0;
  char** listed = nacre_list_column_families(options, "basket", &count, &error);
  CHECK_OK(error);
  CHECK(count == 2 && strcmp(listed[0], "default") == 0 && strcmp(listed[1], "fruit") == 0);
  nacre_list_column_families_destroy(listed, count);
  CHECK(nacre_list_column_families(options, "missing", &count, &error) == NULL && count == 0);
  CHECK_FAILED(nacre_code_not_found);
  // All families have to be named.
  CHECK(nacre_open(appending, "basket", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_destroy_db(options, "basket", &error);
  CHECK_OK(error);
  nacre_options_destroy(of_fruit);
  nacre_options_destroy(appending);
}
