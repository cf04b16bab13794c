// Goal: a program that was written for LevelDB does the same with libnacre_leveldb.
// Method: calls all of leveldb/c.h (exports_test.py sees to that) on the database at argv[1] and
// prints what it is answered, as far as LevelDB promises it. Built once against each library; the
// two outputs must be the same. It knows nothing of Nacre.

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char* error = NULL;
static leveldb_options_t* options;
static leveldb_readoptions_t* reads;
static leveldb_writeoptions_t* writes;

static void PrintBytes(const char* bytes, size_t size) {
  if (bytes == NULL) printf("NULL");
  for (size_t i = 0; bytes != NULL && i < size; ++i) {
    if (bytes[i] >= ' ' && bytes[i] <= '~') {
      putchar(bytes[i]);
    } else {
      printf("\\x%02x", (unsigned char)bytes[i]);
    }
  }
}

static void PrintError(const char* what) {
  printf("%s: %s\n", what, error == NULL ? "no error" : error);
  leveldb_free(error);
  error = NULL;
}

static void Put(leveldb_t* db, const char* key, const char* value) {
  leveldb_put(db, writes, key, strlen(key), value, strlen(value), &error);
  if (error != NULL) PrintError("put");
}

static void Get(leveldb_t* db, const leveldb_readoptions_t* read_options, const char* key) {
  size_t size = 77;
  char* value = leveldb_get(db, read_options, key, strlen(key), &size, &error);
  printf("get %s: ", key);
  PrintBytes(value, size);
  printf(" (%zu)\n", size);
  if (error != NULL) PrintError("get");
  leveldb_free(value);
}

static void PrintAt(const char* what, const leveldb_iterator_t* iterator) {
  printf("%s: ", what);
  if (!leveldb_iter_valid(iterator)) {
    printf("not valid\n");
    return;
  }
  size_t size = 0;
  const char* bytes = leveldb_iter_key(iterator, &size);
  PrintBytes(bytes, size);
  printf(" = ");
  bytes = leveldb_iter_value(iterator, &size);
  PrintBytes(bytes, size);
  printf("\n");
}

static void Scan(leveldb_t* db, const leveldb_readoptions_t* read_options) {
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, read_options);
  for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator);
       leveldb_iter_next(iterator)) {
    PrintAt("scan", iterator);
  }
  leveldb_iter_get_error(iterator, &error);
  PrintError("end of scan");
  leveldb_iter_destroy(iterator);
}

static void OpenFailures(const char* path) {
  printf("open a missing one: %d\n", leveldb_open(options, path, &error) != NULL);
  PrintError("missing");
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, path, &error);
  PrintError("created");
  printf("open twice: %d\n", leveldb_open(options, path, &error) != NULL);
  PrintError("twice");
  leveldb_destroy_db(options, path, &error);
  PrintError("destroy an open one");
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  printf("open an existing one: %d\n", leveldb_open(options, path, &error) != NULL);
  // The message of the failure before is still there, and is replaced.
  printf("again: %d\n", leveldb_open(options, path, &error) != NULL);
  PrintError("exists");
  leveldb_options_set_error_if_exists(options, 0);
}

static void ReadsAndWrites(leveldb_t* db) {
  Put(db, "foo", "hello");
  Put(db, "empty", "");
  Get(db, reads, "foo");
  Get(db, reads, "empty");
  Get(db, reads, "bar");
  leveldb_put(db, writes, "a\0b", 3, "\0\xff", 2, &error);
  leveldb_put(db, writes, "", 0, "of the empty key", 16, &error);
  PrintError("put zeros");
  leveldb_delete(db, writes, "foo", 3, &error);
  leveldb_delete(db, writes, "never was", 9, &error);
  PrintError("delete");
  Get(db, reads, "foo");
  Get(db, reads, "");
  Scan(db, reads);
}

static void PrintPut(void* state, const char* key, size_t key_size, const char* value,
                     size_t value_size) {
  printf("%s put ", (const char*)state);
  PrintBytes(key, key_size);
  printf(" ");
  PrintBytes(value, value_size);
  printf("\n");
}

static void PrintDelete(void* state, const char* key, size_t key_size) {
  printf("%s delete ", (const char*)state);
  PrintBytes(key, key_size);
  printf("\n");
}

static void Batches(leveldb_t* db) {
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "cleared", 7, "x", 1);
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "box", 3, "b", 1);
  leveldb_writebatch_put(batch, "box", 3, "c", 1);
  leveldb_writebatch_put(batch, "gone", 4, "d", 1);
  leveldb_writebatch_t* more = leveldb_writebatch_create();
  leveldb_writebatch_delete(more, "gone", 4);
  leveldb_writebatch_put(more, "more", 4, "\1", 1);
  leveldb_writebatch_append(batch, more);
  leveldb_writebatch_append(more, more);
  leveldb_writebatch_iterate(batch, "batch", PrintPut, PrintDelete);
  leveldb_writebatch_iterate(more, "more", PrintPut, PrintDelete);
  leveldb_write(db, writes, batch, &error);
  PrintError("write");
  leveldb_write(db, writes, batch, &error);  // A second time, as it is.
  PrintError("write again");
  leveldb_writebatch_clear(batch);
  leveldb_write(db, writes, batch, &error);
  PrintError("write nothing");
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(more);
  Get(db, reads, "box");
  Get(db, reads, "gone");
  Get(db, reads, "more");
}

static void Iterators(leveldb_t* db) {
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, reads);
  PrintAt("new", iterator);
  leveldb_iter_seek_to_first(iterator);
  PrintAt("first", iterator);
  leveldb_iter_next(iterator);
  PrintAt("next", iterator);
  leveldb_iter_next(iterator);
  leveldb_iter_prev(iterator);
  PrintAt("forth and back", iterator);
  leveldb_iter_prev(iterator);
  leveldb_iter_prev(iterator);
  PrintAt("before the first", iterator);
  leveldb_iter_seek_to_last(iterator);
  PrintAt("last", iterator);
  Put(db, "zzz", "later than the iterator");
  leveldb_iter_next(iterator);
  PrintAt("after the last", iterator);
  leveldb_iter_seek(iterator, "b", 1);
  PrintAt("seek b", iterator);
  leveldb_iter_seek(iterator, "box", 3);
  PrintAt("seek box", iterator);
  leveldb_iter_seek(iterator, "x", 1);
  PrintAt("seek x", iterator);
  leveldb_iter_get_error(iterator, &error);
  PrintError("iterator");
  leveldb_iter_destroy(iterator);
}

static void Snapshots(leveldb_t* db) {
  const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(db);
  leveldb_delete(db, writes, "zzz", 3, &error);
  Put(db, "box", "new");
  leveldb_readoptions_t* old_reads = leveldb_readoptions_create();
  leveldb_readoptions_set_snapshot(old_reads, snapshot);
  Get(db, old_reads, "box");
  Get(db, reads, "box");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  Scan(db, old_reads);
  leveldb_readoptions_set_snapshot(old_reads, NULL);
  Scan(db, old_reads);
  leveldb_readoptions_destroy(old_reads);
  leveldb_release_snapshot(db, snapshot);
}

static void Tables(leveldb_t* db) {
  char key[20];
  char value[101];
  unsigned random = 301;
  for (int i = 0; i < 5000; ++i) {
    for (int j = 0; j < 100; ++j) {  // Compression has nothing to gain here.
      random = random * 1664525 + 1013904223;
      value[j] = (char)('!' + (random >> 24) % 90);
    }
    sprintf(key, "k%06d", i);
    leveldb_put(db, writes, key, strlen(key), value, 100, &error);
  }
  PrintError("5000 puts");
  leveldb_compact_range(db, "k000000", 7, "k999999", 7);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  const char* starts[3] = {"k000000", "k002500", "x"};
  const char* limits[3] = {"k002500", "k005000", "y"};
  const size_t start_sizes[3] = {7, 7, 1};
  const size_t limit_sizes[3] = {7, 7, 1};
  uint64_t sizes[3] = {1, 1, 1};
  leveldb_approximate_sizes(db, 3, starts, start_sizes, limits, limit_sizes, sizes);
  for (int i = 0; i < 3; ++i) {
    const int about = sizes[i] > 200000 && sizes[i] < 400000;
    printf("range %d: %s\n", i, sizes[i] == 0 ? "nothing" : about ? "as it should" : "strange");
  }
  Get(db, reads, "k000000x");
  int count = 0;
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, reads);
  for (leveldb_iter_seek_to_last(iterator); leveldb_iter_valid(iterator);
       leveldb_iter_prev(iterator)) {
    ++count;
  }
  printf("%d keys from the last to the first\n", count);
  leveldb_iter_destroy(iterator);
}

static void Properties(leveldb_t* db) {
  const char* names[] = {"leveldb.num-files-at-level0",
                         "leveldb.num-files-at-level6",
                         "leveldb.num-files-at-level7",
                         "leveldb.num-files-at-level",
                         "leveldb.num-files-at-level0x",
                         "leveldb.stats",
                         "leveldb.sstables",
                         "leveldb.approximate-memory-usage",
                         "leveldb.nonsense",
                         "nacre.stats",
                         "stats",
                         ""};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    char* value = leveldb_property_value(db, names[i]);
    printf("property %s: %s\n", names[i], value == NULL ? "NULL" : "a text");
    if (i == 7) printf("in use: %d\n", value != NULL && atoll(value) > 0);
    if (i == 0) printf("files at level 0 after compaction: %s\n", value);
    leveldb_free(value);
  }
}

static int CompareReversed(void* state, const char* a, size_t a_size, const char* b,
                           size_t b_size) {
  ++*(int*)state;
  const size_t shorter = a_size < b_size ? a_size : b_size;
  const int order = memcmp(b, a, shorter);
  return order != 0 ? order : (a_size < b_size ? 1 : a_size > b_size ? -1 : 0);
}

static const char* ReversedName(void* state) {
  (void)state;
  return "program.Reversed";
}

static void PrintDestroyed(void* state) { printf("destroyed after %d\n", *(int*)state > 0); }

static void Comparators(const char* path) {
  int compared = 0;
  leveldb_comparator_t* comparator =
      leveldb_comparator_create(&compared, PrintDestroyed, CompareReversed, ReversedName);
  leveldb_options_t* own = leveldb_options_create();
  leveldb_options_set_create_if_missing(own, 1);
  leveldb_options_set_comparator(own, comparator);
  printf("open in another order: %d\n", leveldb_open(own, path, &error) != NULL);
  PrintError("order");
  char other[1000];
  snprintf(other, sizeof(other), "%s.reversed", path);
  leveldb_t* db = leveldb_open(own, other, &error);
  PrintError("open in an order of its own");
  Put(db, "a", "1");
  Put(db, "b", "2");
  Put(db, "bb", "3");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  Put(db, "c", "4");
  Scan(db, reads);
  leveldb_close(db);
  printf("open in the usual order: %d\n", leveldb_open(options, other, &error) != NULL);
  PrintError("order");
  leveldb_repair_db(own, other, &error);
  PrintError("repair");
  db = leveldb_open(own, other, &error);
  Scan(db, reads);
  leveldb_close(db);
  leveldb_destroy_db(own, other, &error);
  PrintError("destroy");
  leveldb_options_destroy(own);
  leveldb_comparator_destroy(comparator);
}

static char* MakeFilter(void* state, const char* const* keys, const size_t* sizes, int count,
                        size_t* filter_size) {
  (void)state;
  (void)keys;
  (void)sizes;
  (void)count;
  *filter_size = 4;
  char* filter = malloc(4);
  memcpy(filter, "fake", 4);
  return filter;
}

static uint8_t MayMatch(void* state, const char* key, size_t size, const char* filter,
                        size_t filter_size) {
  (void)state;
  (void)key;
  (void)size;
  return filter_size == 4 && memcmp(filter, "fake", 4) == 0;
}

static const char* FilterName(void* state) {
  (void)state;
  return "program.Filter";
}

static void Filters(const char* path) {
  int state = 1;
  leveldb_filterpolicy_t* policies[2] = {
      leveldb_filterpolicy_create(&state, PrintDestroyed, MakeFilter, MayMatch, FilterName),
      leveldb_filterpolicy_create_bloom(10)};
  for (int i = 0; i < 2; ++i) {
    leveldb_options_set_filter_policy(options, policies[i]);
    leveldb_t* db = leveldb_open(options, path, &error);
    PrintError("open with a filter");
    Put(db, "filtered", i == 0 ? "once" : "twice");
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    Get(db, reads, "filtered");
    Get(db, reads, "filtere");
    leveldb_close(db);
    leveldb_options_set_filter_policy(options, NULL);
    leveldb_filterpolicy_destroy(policies[i]);
  }
}

static void Management(const char* path) {
  leveldb_repair_db(options, path, &error);
  PrintError("repair");
  leveldb_t* db = leveldb_open(options, path, &error);
  PrintError("open what was repaired");
  Get(db, reads, "filtered");
  Get(db, reads, "more");
  leveldb_close(db);
  char slashed[1000];
  snprintf(slashed, sizeof(slashed), "%s/", path);
  leveldb_options_set_create_if_missing(options, 0);
  db = leveldb_open(options, slashed, &error);
  PrintError("open with a slash");
  Get(db, reads, "more");
  leveldb_close(db);
  leveldb_destroy_db(options, path, &error);
  PrintError("destroy");
  leveldb_destroy_db(options, path, &error);
  PrintError("destroy nothing");
  printf("open what is gone: %d\n", leveldb_open(options, path, &error) != NULL);
  PrintError("gone");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  printf("version %d.%d\n", leveldb_major_version(), leveldb_minor_version());
  leveldb_free(NULL);
  leveldb_env_t* env = leveldb_create_default_env();
  char* directory = leveldb_env_get_test_directory(env);
  printf("tests may use %s\n", directory);
  leveldb_free(directory);
  leveldb_cache_t* cache = leveldb_cache_create_lru(1 << 20);
  options = leveldb_options_create();
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_write_buffer_size(options, 1 << 20);
  leveldb_options_set_max_file_size(options, 1 << 20);
  leveldb_options_set_max_open_files(options, 100);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_compression(options, leveldb_no_compression);
  reads = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(reads, 1);
  leveldb_readoptions_set_fill_cache(reads, 0);
  writes = leveldb_writeoptions_create();
  leveldb_writeoptions_set_sync(writes, 0);

  OpenFailures(argv[1]);
  leveldb_t* db = leveldb_open(options, argv[1], &error);
  PrintError("open");
  if (db == NULL) return 1;
  ReadsAndWrites(db);
  leveldb_writeoptions_set_sync(writes, 1);
  Batches(db);
  leveldb_writeoptions_set_sync(writes, 0);
  Iterators(db);
  Snapshots(db);
  Tables(db);
  Properties(db);
  leveldb_close(db);
  Comparators(argv[1]);
  Filters(argv[1]);
  Management(argv[1]);

  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  leveldb_options_destroy(options);
  leveldb_cache_destroy(cache);
  leveldb_env_destroy(env);
  return 0;
}
