// Goal: nacre/c_keyspaces.h does what it says, for a program in C.
// Method: a keyspace of several shards that is written, read over borders, opened anew and
// destroyed; with a coordinator, by two members and a client. argv[1] names the pool; argv[2], if
// there is one, the coordinator.

#include "nacre/c_keyspaces.h"

#include "nacre/c_etcd.h"
#include "tests/adapters/c_client.h"

static nacre_t* Open(const nacre_shardedoptions_t* sharded) {
  nacre_t* db = nacre_open_sharded(options, sharded, "reef", &error);
  CHECK_OK(error);
  return db;
}

static void CheckShards(nacre_t* db, uint64_t count) {
  uint64_t shards = 0;
  CHECK(nacre_property_int(db, "nacre.shards", &shards) == 0 && shards == count);
}

/// A batch over several shards, and an iterator over their borders.
static void TestBorders(nacre_t* db) {
  nacre_writebatch_t* batch = nacre_writebatch_create();
  const char* const keys[3] = {"anna", "kim", "zoe"};
  for (int i = 0; i < 3; ++i) nacre_writebatch_put(batch, keys[i], strlen(keys[i]), "1", 1);
  nacre_write(db, writes, batch, &error);
  CHECK_OK(error);
  nacre_writebatch_destroy(batch);
  nacre_iterator_t* iterator = nacre_create_iterator(db, reads);
  nacre_iter_seek_to_first(iterator);
  for (int i = 0; i < 3; ++i, nacre_iter_next(iterator)) CheckAt(iterator, keys[i], "1");
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_destroy(iterator);
}

static void TestOptions(nacre_shardedoptions_t* sharded) {
  CHECK(strcmp(nacre_shardedoptions_get_coordinator(sharded), "") == 0);
  CHECK(nacre_shardedoptions_get_member_lease(sharded) == 2000);
  nacre_shardedoptions_set_member_lease(sharded, 3000);
  CHECK(nacre_shardedoptions_get_member_lease(sharded) == 3000);
  // There is no coordinator that it could be a member with.
  nacre_shardedoptions_set_member_address(sharded, "shm:@");
  CHECK(strcmp(nacre_shardedoptions_get_member_address(sharded), "shm:@") == 0);
  CHECK(nacre_open_sharded(options, sharded, "reef", &error) == NULL);
  CHECK_FAILED(nacre_code_invalid_argument);
  nacre_shardedoptions_set_member_address(sharded, "");
  nacre_shardedoptions_add_boundary(sharded, "h", 1);
  nacre_shardedoptions_add_boundary(sharded, "p", 1);
}

static void TestFamilies(const nacre_shardedoptions_t* sharded) {
  const char* const names[2] = {"default", "more"};
  const nacre_options_t* const both[2] = {options, options};
  nacre_column_family_handle_t* handles[2];
  nacre_options_set_create_missing_column_families(options, 1);
  nacre_t* db =
      nacre_open_sharded_column_families(options, sharded, "reef", 2, names, both, handles, &error);
  CHECK_OK(error);
  nacre_put_cf(db, writes, handles[1], "zoe", 3, "2", 1, &error);
  CHECK_OK(error);
  size_t size = 0;
  char* found = nacre_get_cf(db, reads, handles[1], "zoe", 3, &size, &error);
  CHECK_OK(error);
  CheckText(found, size, "2");
  CheckValue(db, reads, "zoe", "1");
  for (int i = 0; i < 2; ++i) nacre_column_family_handle_destroy(handles[i]);
  nacre_close(db);
}

/// Two processes would do the same.
static void TestMembers(nacre_shardedoptions_t* sharded, const char* coordinator) {
  nacre_shardedoptions_set_coordinator(sharded, coordinator);
  nacre_shardedoptions_set_member_address(sharded, "shm:@");
  // Each is a process of its own otherwise, with a pool of its own.
  nacre_use_etcd();
  nacre_t* first = Open(sharded);
  nacre_t* second = Open(sharded);
  nacre_shardedoptions_set_member_address(sharded, "");
  nacre_t* client = Open(sharded);
  TestBorders(client);
  CheckValue(first, reads, "zoe", "1");
  CheckValue(second, reads, "anna", "1");
  nacre_close(client);
  nacre_close(second);
  nacre_close(first);
}

int main(int argc, char** argv) {
  CHECK(argc == 2 || argc == 3);
  SetUp(argv[1]);
  nacre_shardedoptions_t* sharded = nacre_shardedoptions_create();
  TestOptions(sharded);
  CHECK(nacre_open_sharded(options, sharded, "reef", &error) == NULL);
  CHECK(error != NULL);
  nacre_free(error);
  error = NULL;
  nacre_options_set_create_if_missing(options, 1);
  if (argc == 3) {
    TestMembers(sharded, argv[2]);
  } else {
    nacre_t* db = Open(sharded);
    CheckShards(db, 3);
    TestBorders(db);
    nacre_close(db);
    TestFamilies(sharded);
  }
  nacre_destroy_sharded_db(options, sharded, "reef", &error);
  CHECK_OK(error);
  size_t count = 1;
  nacre_list_dbs_destroy(nacre_list_dbs(options, &count, &error), count);
  CHECK_OK(error);
  CHECK(count == 0);
  nacre_shardedoptions_destroy(sharded);
  nacre_shardedoptions_destroy(NULL);
  TearDown();
  puts("all is well");
  return 0;
}
