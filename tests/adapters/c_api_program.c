// Goal: each function of nacre/c.h does what the header says, for a program in C.
// Method: calls all but those of families and kinds of updates, which c_families_program.c calls
// (exports_test.py sees to it that all are called) over the pool argv[1] names, checks each
// answer, and ends with 0 if all were right. Checkpoints go to the folder argv[2].

#include <fcntl.h>
#include <unistd.h>

#include "nacre/c.h"
#include "tests/adapters/c_client.h"

static void TestErrors(void) {
  CHECK(nacre_error_code(NULL) == nacre_code_ok);
  CHECK(nacre_error_code("it rains") == -1);
  CHECK(strchr(nacre_version(), '.') != NULL);
  CHECK(strncmp(nacre_version_with_commit(), nacre_version(), strlen(nacre_version())) == 0);
  CHECK(strstr(nacre_version_with_commit(), " (commit ") != NULL);
  nacre_free(NULL);
  CHECK(nacre_open(options, "missing", &error) == NULL);
  CHECK(strstr(error, "create_if_missing is false") != NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  CHECK(nacre_pool_open("nonsense:", NULL, &error) == NULL);
  // A message takes the place of the one before.
  CHECK(nacre_pool_open("nonsense:", "secret", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_options_t* wrong = nacre_options_create_copy(options);
  nacre_options_set_compaction(wrong, 7);
  CHECK(nacre_open(wrong, "wrong", &error) == NULL);
  CHECK(strstr(error, "nacre_options_set_compaction: 7") != NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_options_destroy(wrong);
}

// Sets an option to a value that is not the default, and reads it back.
#define CHECK_OPTION(name, value)                           \
  do {                                                      \
    CHECK(nacre_options_get_##name(set) != (value));        \
    nacre_options_set_##name(set, value);                   \
    CHECK(nacre_options_get_##name(set) == (value));        \
    nacre_options_t* copy = nacre_options_create_copy(set); \
    CHECK(nacre_options_get_##name(copy) == (value));       \
    nacre_options_destroy(copy);                            \
  } while (0)

static void TestWriteBufferManager(void) {
  nacre_write_buffer_manager_t* manager = nacre_write_buffer_manager_create(0, 1);
  CHECK(!nacre_write_buffer_manager_enabled(manager));
  nacre_write_buffer_manager_set_buffer_size(manager, 1 << 20);
  nacre_write_buffer_manager_set_allow_stall(manager, 0);
  CHECK(nacre_write_buffer_manager_enabled(manager));
  CHECK(nacre_write_buffer_manager_buffer_size(manager) == 1 << 20);
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_options_set_create_if_missing(own, 1);
  nacre_options_set_write_buffer_manager(own, manager);
  nacre_t* counted = nacre_open(own, "counted", &error);
  CHECK_OK(error);
  nacre_writeoptions_t* how = nacre_writeoptions_create();
  nacre_put(counted, how, "k", 1, "v", 1, &error);
  CHECK_OK(error);
  CHECK(nacre_write_buffer_manager_memory_usage(manager) > 0);
  CHECK(nacre_write_buffer_manager_mutable_memtable_memory_usage(manager) > 0);
  nacre_close(counted);
  CHECK(nacre_write_buffer_manager_memory_usage(manager) == 0);
  nacre_destroy_db(own, "counted", &error);
  CHECK_OK(error);
  nacre_writeoptions_destroy(how);
  nacre_options_destroy(own);
  nacre_write_buffer_manager_destroy(manager);
}

static void TestOptions(void) {
  nacre_options_t* set = nacre_options_create();
  CHECK_OPTION(allow_degraded_writes, 1);
  CHECK_OPTION(allow_narrow_writes, 0);
  CHECK_OPTION(compaction, nacre_compaction_compute);
  CHECK_OPTION(near_data_flush, nacre_near_data_flush_off);
  CHECK_OPTION(scrub_bytes_per_second, 1);
  CHECK_OPTION(create_if_missing, 1);
  CHECK_OPTION(create_missing_column_families, 1);
  CHECK_OPTION(error_if_exists, 1);
  CHECK_OPTION(take_over, 1);
  CHECK_OPTION(follow_interval_ms, 7);
  CHECK_OPTION(write_buffer_size, 1 << 20);
  CHECK_OPTION(max_write_buffer_number, 5);
  CHECK_OPTION(manual_wal_flush, 1);
  CHECK_OPTION(wal_recovery_mode, nacre_absolute_consistency_recovery);
  CHECK_OPTION(manifest_image_interval_ms, 77);
  CHECK_OPTION(manifest_image_edits, 12);
  CHECK_OPTION(num_levels, 5);
  CHECK_OPTION(level0_file_num_compaction_trigger, 3);
  CHECK_OPTION(level0_slowdown_writes_trigger, 21);
  CHECK_OPTION(level0_stop_writes_trigger, 37);
  CHECK_OPTION(target_file_size_base, 1 << 20);
  CHECK_OPTION(target_file_size_multiplier, 2);
  CHECK_OPTION(max_bytes_for_level_base, 1 << 20);
  CHECK_OPTION(max_bytes_for_level_multiplier, 7.5);
  CHECK_OPTION(soft_pending_compaction_bytes_limit, 1);
  CHECK_OPTION(hard_pending_compaction_bytes_limit, 2);
  CHECK_OPTION(delayed_write_rate, 3);
  CHECK_OPTION(disable_auto_compactions, 1);
  CHECK_OPTION(max_background_jobs, 3);
  CHECK_OPTION(max_subcompactions, 2);
  CHECK_OPTION(home_nodes, 1);
  CHECK_OPTION(db_write_buffer_size, 3 << 20);
  CHECK_OPTION(slab_size, 1 << 20);
  CHECK_OPTION(chunk_size, 1 << 12);
  CHECK_OPTION(max_queue_pairs_per_node, 9);
  CHECK_OPTION(repair_bytes_per_second, 4);
  CHECK_OPTION(operation_timeout_ms, 1234);
  CHECK_OPTION(slow_node_patience_min_ms, 17);
  CHECK_OPTION(slow_node_patience_max_ms, 170);
  CHECK_OPTION(hedged_reads_percent, 9);
  CHECK_OPTION(slow_operation_threshold_us, 2500);
  CHECK_OPTION(max_archive_lag_MB, 17);
  CHECK_OPTION(max_log_file_size, 1 << 20);
  CHECK_OPTION(log_file_time_to_roll, 60);
  CHECK_OPTION(keep_log_file_num, 3);
  CHECK_OPTION(info_log_level, nacre_log_warn);
  CHECK_OPTION(index_memory_budget, 1 << 20);
  nacre_options_destroy(set);
}

static void TestReadsAndWrites(nacre_t* db) {
  CHECK(strcmp(nacre_get_name(db), "pearls") == 0);
  const uint64_t before = nacre_get_latest_sequence_number(db);
  Put(db, "a", "1");
  Put(db, "empty", "");
  CHECK(nacre_get_latest_sequence_number(db) == before + 2);
  CheckValue(db, reads, "a", "1");
  CheckValue(db, reads, "empty", "");
  CheckValue(db, reads, "b", NULL);
  nacre_put(db, writes, "a\0b", 3, "\0\1", 2, &error);
  CHECK_OK(error);
  nacre_pinnableslice_t* slice = nacre_get_pinned(db, reads, "a\0b", 3, &error);
  CHECK_OK(error);
  size_t size = 0;
  CHECK(memcmp(nacre_pinnableslice_value(slice, &size), "\0\1", 2) == 0 && size == 2);
  nacre_pinnableslice_destroy(slice);
  CHECK(nacre_get_pinned(db, reads, "zz", 2, &error) == NULL);
  CHECK_OK(error);
  CHECK(nacre_pinnableslice_value(NULL, &size) == NULL && size == 0);
  nacre_delete(db, writes, "a\0b", 3, &error);
  CHECK_OK(error);

  const char* keys[3] = {"a", "b", "empty"};
  const size_t key_sizes[3] = {1, 1, 5};
  char* values[3];
  char* errors[3];
  size_t value_sizes[3];
  nacre_multi_get(db, reads, 3, keys, key_sizes, values, value_sizes, errors);
  for (int i = 0; i < 3; ++i) CHECK_OK(errors[i]);
  CHECK(value_sizes[0] == 1 && memcmp(values[0], "1", 1) == 0);
  CHECK(values[1] == NULL && value_sizes[1] == 0);
  CHECK(values[2] != NULL && value_sizes[2] == 0);
  for (int i = 0; i < 3; ++i) nacre_free(values[i]);

  const nacre_snapshot_t* snapshot = nacre_create_snapshot(db);
  CHECK(nacre_snapshot_get_sequence_number(snapshot) == nacre_get_latest_sequence_number(db));
  Put(db, "a", "2");
  nacre_readoptions_t* old_reads = nacre_readoptions_create();
  nacre_readoptions_set_snapshot(old_reads, snapshot);
  CheckValue(db, old_reads, "a", "1");
  nacre_readoptions_set_snapshot(old_reads, NULL);
  CheckValue(db, old_reads, "a", "2");
  nacre_readoptions_destroy(old_reads);
  nacre_release_snapshot(db, snapshot);
  nacre_release_snapshot(db, NULL);
}

/// What an iteration over a batch has seen, as text.
static void NotePut(void* state, const char* key, size_t key_size, const char* value,
                    size_t value_size) {
  sprintf((char*)state + strlen(state), "+%.*s=%.*s", (int)key_size, key, (int)value_size, value);
}

static void NoteDelete(void* state, const char* key, size_t key_size) {
  sprintf((char*)state + strlen(state), "-%.*s", (int)key_size, key);
}

static void TestBatches(nacre_t* db) {
  nacre_writebatch_t* batch = nacre_writebatch_create();
  nacre_writebatch_put(batch, "gone", 4, "", 0);
  nacre_writebatch_clear(batch);
  CHECK(nacre_writebatch_count(batch) == 0);
  nacre_writebatch_put(batch, "b", 1, "3", 1);
  nacre_writebatch_put(batch, "c", 1, "4", 1);
  nacre_writebatch_delete(batch, "empty", 5);
  CHECK(nacre_writebatch_count(batch) == 3);
  size_t size = 0;
  const char* data = nacre_writebatch_data(batch, &size);
  nacre_writebatch_t* same = nacre_writebatch_create_from(data, size);
  nacre_writebatch_t* torn = nacre_writebatch_create_from(data, size - 1);
  char seen[100] = "";
  nacre_writebatch_iterate(same, seen, NotePut, NoteDelete, &error);
  CHECK_OK(error);
  CHECK(strcmp(seen, "+b=3+c=4-empty") == 0);
  nacre_writebatch_iterate(torn, seen, NotePut, NoteDelete, &error);
  CHECK_FAILED(nacre_code_corruption);
  nacre_write(db, writes, torn, &error);
  CHECK_FAILED(nacre_code_corruption);
  CheckValue(db, reads, "b", NULL);
  // Longer than a batch can say; the key is not read.
  nacre_writebatch_put(torn, data, (size_t)1 << 33, "", 0);
  nacre_write(db, writes, torn, &error);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_write(db, writes, same, &error);
  CHECK_OK(error);
  CheckValue(db, reads, "b", "3");
  CheckValue(db, reads, "c", "4");
  CheckValue(db, reads, "empty", NULL);
  nacre_writebatch_destroy(batch);
  nacre_writebatch_destroy(same);
  nacre_writebatch_destroy(torn);
}

/// The database has a=2, b=3, c=4.
static void TestIterators(nacre_t* db) {
  nacre_iterator_t* iterator = nacre_create_iterator(db, reads);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_seek_to_first(iterator);
  CheckAt(iterator, "a", "2");
  nacre_iter_next(iterator);
  CheckAt(iterator, "b", "3");
  nacre_iter_prev(iterator);
  CheckAt(iterator, "a", "2");
  nacre_iter_seek_to_last(iterator);
  CheckAt(iterator, "c", "4");
  nacre_iter_seek(iterator, "aa", 2);
  CheckAt(iterator, "b", "3");
  nacre_iter_seek_for_prev(iterator, "bb", 2);
  CheckAt(iterator, "b", "3");
  nacre_iter_seek(iterator, "d", 1);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_get_error(iterator, &error);
  CHECK_OK(error);
  nacre_iter_destroy(iterator);

  nacre_readoptions_t* bounded = nacre_readoptions_create();
  char bound = 'b';
  nacre_readoptions_set_iterate_lower_bound(bounded, &bound, 1);
  bound = 'c';
  nacre_readoptions_set_iterate_upper_bound(bounded, &bound, 1);
  nacre_readoptions_set_readahead_size(bounded, 4096);
  iterator = nacre_create_iterator(db, bounded);
  nacre_readoptions_set_iterate_lower_bound(bounded, NULL, 0);
  nacre_readoptions_destroy(bounded);
  nacre_iter_seek_to_first(iterator);
  CheckAt(iterator, "b", "3");
  nacre_iter_next(iterator);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_destroy(iterator);
}

static void TestTables(nacre_t* db) {
  char key[16];
  for (int i = 0; i < 1000; ++i) {
    sprintf(key, "k%06d", i);
    Put(db, key, "a value of some length, so that tables have a size");
  }
  nacre_flushoptions_t* flush = nacre_flushoptions_create();
  nacre_flushoptions_set_wait(flush, 1);
  nacre_flush(db, flush, &error);
  CHECK_OK(error);
  nacre_flushoptions_destroy(flush);
  nacre_flush_wal(db, 1, &error);
  CHECK_OK(error);

  const char* starts[2] = {"k", "x"};
  const char* limits[2] = {"l", "y"};
  const size_t sizes[2] = {1, 1};
  uint64_t bytes[2] = {1, 1};
  nacre_approximate_sizes(db, 2, starts, sizes, limits, sizes, bytes, &error);
  CHECK_OK(error);
  CHECK(bytes[0] > 10000 && bytes[1] == 0);

  nacre_compactoptions_t* compact = nacre_compactoptions_create();
  nacre_compactoptions_set_max_subcompactions(compact, 2);
  nacre_compactoptions_set_target_level(compact, -1);
  nacre_compact_range(db, compact, "a", 1, "l", 1, &error);
  nacre_compact_range(db, compact, NULL, 0, NULL, 0, &error);
  CHECK_OK(error);
  nacre_compactoptions_set_change_level(compact, 1);
  nacre_compact_range(db, compact, NULL, 0, NULL, 0, &error);
  CHECK_OK(error);
  nacre_compactoptions_set_target_level(compact, 0);
  nacre_compact_range(db, compact, NULL, 0, NULL, 0, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_compactoptions_destroy(compact);
  nacre_wait_for_compact(db, &error);
  CHECK_OK(error);
  nacre_verify_checksum(db, &error);
  CHECK_OK(error);
  CheckValue(db, reads, "a", "2");

  char* stats = nacre_property_value(db, "nacre.stats");
  CHECK(stats != NULL && strstr(stats, "Flushes: ") != NULL);
  nacre_free(stats);
  CHECK(nacre_property_value(db, "nacre.nonsense") == NULL);
  uint64_t number = 0;
  CHECK(nacre_property_int(db, "nacre.num-live-tables", &number) == 0 && number >= 1);
  CHECK(nacre_property_int(db, "nacre.stats", &number) == -1);
}

static void TestFollowers(nacre_t* db) {
  nacre_t* frozen = nacre_open_for_read_only(options, "pearls", 0, &error);
  CHECK_OK(error);
  nacre_t* follower = nacre_open_as_secondary(options, "pearls", &error);
  CHECK_OK(error);
  Put(db, "late", "5");
  nacre_flushoptions_t* flush = nacre_flushoptions_create();
  nacre_flush(db, flush, &error);  // An embedded pool has no log to read.
  CHECK_OK(error);
  nacre_flushoptions_destroy(flush);
  nacre_try_catch_up_with_primary(follower, &error);
  CHECK_OK(error);
  CheckValue(follower, reads, "late", "5");
  CheckValue(frozen, reads, "late", NULL);
  nacre_put(frozen, writes, "late", 4, "6", 1, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_try_catch_up_with_primary(frozen, &error);
  CHECK_FAILED(nacre_code_not_supported);
  nacre_close(frozen);
  nacre_close(follower);
}

static unsigned char Progress(void* state, uint64_t tables, uint64_t tables_done, uint64_t bytes,
                              uint64_t bytes_done) {
  CHECK(tables_done <= tables && bytes_done <= bytes);
  ++*(int*)state;
  return 1;
}

static void TestCheckpoints(nacre_t* db, const char* dir) {
  int calls = 0;
  nacre_checkpointoptions_t* how = nacre_checkpointoptions_create();
  nacre_checkpointoptions_set_threads(how, 2);
  nacre_checkpointoptions_set_bytes_per_second(how, 0);
  nacre_checkpointoptions_set_progress(how, &calls, Progress);
  const uint64_t number = nacre_checkpoint_create(db, dir, how, &error);
  CHECK_OK(error);
  CHECK(number > 0 && calls > 0);
  nacre_checkpointoptions_set_progress(how, NULL, NULL);
  nacre_checkpoint_verify(dir, 0, how, &error);
  CHECK_OK(error);

  size_t count = 0;
  nacre_checkpointinfo_t* infos = nacre_checkpoint_list(dir, &count, &error);
  CHECK_OK(error);
  CHECK(count == 1 && nacre_checkpointinfo_number(infos, 0) == number);
  CHECK(nacre_checkpointinfo_sequence(infos, 0) == nacre_get_latest_sequence_number(db));
  CHECK(nacre_checkpointinfo_tables(infos, 0) >= 1 && nacre_checkpointinfo_bytes(infos, 0) > 0);
  CHECK(nacre_checkpointinfo_created_at(infos, 0) > 0);
  CHECK(strcmp(nacre_checkpointinfo_database(infos, 0), "pearls") == 0);
  nacre_checkpoint_list_destroy(infos);

  nacre_restore_db(options, "copy", dir, number, how, &error);
  CHECK_OK(error);
  nacre_t* copy = nacre_open(options, "copy", &error);
  CHECK_OK(error);
  CheckValue(copy, reads, "late", "5");
  nacre_close(copy);
  nacre_checkpoint_delete(dir, number, &error);
  CHECK_OK(error);
  nacre_checkpoint_verify(dir, number, how, &error);
  CHECK_FAILED(nacre_code_not_found);
  CHECK(nacre_checkpoint_list("/nonexistent", &count, &error) == NULL && count == 0);
  CHECK_FAILED(nacre_code_not_found);
  nacre_checkpointoptions_destroy(how);
}

static int CompareSizes(void* state, const char* a, size_t a_size, const char* b, size_t b_size) {
  (void)state;
  if (a_size != b_size) return a_size < b_size ? -1 : 1;
  return memcmp(a, b, a_size);
}

static const char* SizesName(void* state) {
  (void)state;
  return "test.BySize";
}

static void CountDestruction(void* state) { ++*(int*)state; }

static void CountMessage(void* state, int level, const char* message, size_t size) {
  CHECK(level >= nacre_log_debug && level <= nacre_log_error && message != NULL);
  if (size > 0) *(int*)state = -1000;
}

static void TestCallbacks(void) {
  int comparators_gone = 0;
  int logged = 0;
  nacre_comparator_t* by_size =
      nacre_comparator_create(&comparators_gone, CountDestruction, CompareSizes, SizesName);
  nacre_logger_t* logger = nacre_logger_create(&logged, CountDestruction, CountMessage);
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_options_set_create_if_missing(own, 1);
  nacre_options_set_comparator(own, by_size);
  nacre_options_set_info_log(own, logger);
  nacre_logger_destroy(logger);
  nacre_t* db = nacre_open(own, "sizes", &error);
  CHECK_OK(error);
  Put(db, "aaa", "1");
  Put(db, "z", "2");
  nacre_iterator_t* iterator = nacre_create_iterator(db, reads);
  nacre_iter_seek_to_first(iterator);
  CheckAt(iterator, "z", "2");
  nacre_iter_destroy(iterator);
  nacre_try_close(db, &error);
  CHECK_OK(error);
  nacre_close(db);

  nacre_comparator_t* reverse = nacre_comparator_reverse_bytewise();
  nacre_options_set_comparator(own, reverse);
  CHECK(nacre_open(own, "sizes", &error) == NULL);
  CHECK(strstr(error, "test.BySize") != NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_comparator_t* bytewise = nacre_comparator_bytewise();
  nacre_options_set_comparator(own, bytewise);
  CHECK(logged < 0);  // Opening and closing were told.
  const int messages_only = logged;
  nacre_options_destroy(own);
  CHECK(logged == messages_only + 1);  // That was the logger's last user.
  nacre_comparator_destroy(by_size);
  CHECK(comparators_gone == 1);
  nacre_comparator_destroy(bytewise);
  nacre_comparator_destroy(reverse);
}

/// A LOG in a folder of this machine.
static void TestLogFolder(const char* dir) {
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_options_set_create_if_missing(own, 1);
  nacre_options_set_db_log_dir(own, dir);
  nacre_t* db = nacre_open(own, "logged", &error);
  CHECK_OK(error);
  nacre_close(db);
  nacre_destroy_db(own, "logged", &error);
  CHECK_OK(error);
  nacre_options_destroy(own);
  char path[512];
  CHECK(snprintf(path, sizeof(path), "%s/logged_LOG", dir) < (int)sizeof(path));
  FILE* log = fopen(path, "r");
  CHECK(log != NULL && fgetc(log) != EOF);
  fclose(log);
}

/// An address that cannot be listened at is an error that names it.
static void TestMetricsAddress(void) {
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_options_set_create_if_missing(own, 1);
  nacre_options_set_metrics_address(own, "nowhere");
  CHECK(nacre_open(own, "shown", &error) == NULL);
  CHECK(error != NULL && strstr(error, "'nowhere'") != NULL);
  nacre_free(error);
  error = NULL;
  nacre_options_set_metrics_address(own, "127.0.0.1:0");
  nacre_t* db = nacre_open(own, "shown", &error);
  CHECK_OK(error);
  nacre_close(db);
  nacre_destroy_db(own, "shown", &error);
  CHECK_OK(error);
  nacre_options_destroy(own);
}

/// A database that is encrypted needs its key file, which must be there.
static void TestEncryptionKeyFile(const char* dir) {
  char path[512];
  CHECK(snprintf(path, sizeof(path), "%s/keys", dir) < (int)sizeof(path));
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_options_set_create_if_missing(own, 1);
  nacre_options_set_encryption_key_file(own, path);
  CHECK(nacre_open(own, "encrypted", &error) == NULL);
  CHECK(error != NULL && strstr(error, path) != NULL);
  nacre_free(error);
  error = NULL;
  const int file = open(path, O_CREAT | O_WRONLY, 0600);
  const char keys[] = "one 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
  CHECK(write(file, keys, sizeof(keys) - 1) == (ssize_t)sizeof(keys) - 1);
  close(file);
  nacre_t* db = nacre_open(own, "encrypted", &error);
  CHECK_OK(error);
  nacre_close(db);
  nacre_destroy_db(own, "encrypted", &error);
  CHECK_OK(error);
  nacre_options_destroy(own);
}

static void TestNames(const char* uri) {
  size_t count = 0;
  char** names = nacre_list_dbs(options, &count, &error);
  CHECK_OK(error);
  CHECK(count == 3 && strcmp(names[0], "copy") == 0 && strcmp(names[2], "sizes") == 0);
  nacre_list_dbs_destroy(names, count);
  nacre_destroy_db(options, "copy", &error);
  nacre_destroy_db(options, "sizes", &error);
  nacre_destroy_db(options, "never was", &error);
  CHECK_OK(error);
  names = nacre_list_dbs(options, &count, &error);
  CHECK(count == 1 && strcmp(names[0], "pearls") == 0);
  nacre_list_dbs_destroy(names, count);

  nacre_options_t* other = nacre_options_create();
  nacre_options_set_pool_uri(other, "shm:/nonexistent.sock");
  nacre_options_set_operation_timeout_ms(other, 1000);
  CHECK(nacre_list_dbs(other, &count, &error) == NULL && count == 0);
  CHECK_FAILED(nacre_code_unavailable);
  nacre_options_destroy(other);
  CHECK(uri != NULL);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  SetUp(argv[1]);
  TestOptions();
  TestWriteBufferManager();
  TestErrors();
  nacre_options_set_create_if_missing(options, 1);
  nacre_t* db = nacre_open(options, "pearls", &error);
  CHECK_OK(error);
  nacre_options_set_create_if_missing(options, 0);
  CHECK(nacre_open(options, "pearls", &error) == NULL);
  CHECK_FAILED(nacre_code_busy);
  TestReadsAndWrites(db);
  TestBatches(db);
  TestIterators(db);
  TestTables(db);
  TestFollowers(db);
  TestCheckpoints(db, argv[2]);
  TestLogFolder(argv[2]);
  TestMetricsAddress();
  TestEncryptionKeyFile(argv[2]);
  TestCallbacks();
  nacre_close(db);
  TestNames(argv[1]);

  TearDown();
  puts("all is well");
  return 0;
}
