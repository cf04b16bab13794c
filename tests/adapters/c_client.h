#pragma once

// What the programs that call nacre/c.h share: a pool, options, and checks of what they are
// answered.

#include "nacre/c.h"
#include "tests/adapters/check.h"

static char* error = NULL;
static nacre_options_t* options;
static nacre_readoptions_t* reads;
static nacre_writeoptions_t* writes;

/// The last call failed with `code`; the message is given back.
#define CHECK_FAILED(code)                    \
  do {                                        \
    CHECK(nacre_error_code(error) == (code)); \
    nacre_free(error);                        \
    error = NULL;                             \
  } while (0)

static inline void Put(nacre_t* db, const char* key, const char* value) {
  nacre_put(db, writes, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

/// Checks `found` and frees it; a null `text` means that nothing was found.
static inline void CheckText(char* found, size_t size, const char* text) {
  CHECK((found == NULL) == (text == NULL));
  CHECK(size == (text == NULL ? 0 : strlen(text)));
  CHECK(text == NULL || memcmp(found, text, size) == 0);
  nacre_free(found);
}

/// `value` null: there is no such key.
static inline void CheckValue(nacre_t* db, const nacre_readoptions_t* read_options, const char* key,
                              const char* value) {
  size_t size = 1;
  char* found = nacre_get(db, read_options, key, strlen(key), &size, &error);
  CHECK_OK(error);
  CheckText(found, size, value);
}

static inline void CheckAt(const nacre_iterator_t* iterator, const char* key, const char* value) {
  CHECK(nacre_iter_valid(iterator));
  size_t size = 0;
  const char* found = nacre_iter_key(iterator, &size);
  CHECK(size == strlen(key) && memcmp(found, key, size) == 0);
  found = nacre_iter_value(iterator, &size);
  CHECK(size == strlen(value) && memcmp(found, value, size) == 0);
}

/// Options for databases in the pool that `uri` names.
static inline void SetUp(const char* uri) {
  nacre_pool_t* pool = nacre_pool_open(uri, NULL, &error);
  CHECK_OK(error);
  CHECK(strcmp(nacre_pool_uri(pool), uri) == 0 && nacre_pool_node_count(pool) >= 2);
  options = nacre_options_create();
  nacre_options_set_pool(options, pool);
  nacre_options_set_redundancy(options, "rep(2)");
  nacre_options_set_chunk_size(options, 64 << 10);
  nacre_pool_close(pool);
  reads = nacre_readoptions_create();
  nacre_readoptions_set_verify_checksums(reads, 1);
  nacre_readoptions_set_linearizable(reads, 0);
  writes = nacre_writeoptions_create();
  nacre_writeoptions_set_sync(writes, 1);
  nacre_writeoptions_disable_wal(writes, 0);
  nacre_writeoptions_set_no_slowdown(writes, 0);
}

static inline void TearDown(void) {
  nacre_readoptions_destroy(reads);
  nacre_writeoptions_destroy(writes);
  nacre_options_destroy(options);
}
