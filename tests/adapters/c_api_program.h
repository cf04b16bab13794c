#pragma once

// What the parts of the program that calls all of nacre/c.h share.

#include "nacre/c.h"
#include "tests/adapters/check.h"

extern char* error;
extern nacre_options_t* options;
extern nacre_readoptions_t* reads;
extern nacre_writeoptions_t* writes;

/// The last call failed with `code`; the message is given back.
#define CHECK_FAILED(code)                    \
  do {                                        \
    CHECK(nacre_error_code(error) == (code)); \
    nacre_free(error);                        \
    error = NULL;                             \
  } while (0)

/// `value` null: there is no such key.
static inline void CheckValue(nacre_t* db, const nacre_readoptions_t* read_options, const char* key,
                              const char* value) {
  size_t size = 1;
  char* found = nacre_get(db, read_options, key, strlen(key), &size, &error);
  CHECK_OK(error);
  CHECK((found == NULL) == (value == NULL));
  CHECK(size == (value == NULL ? 0 : strlen(value)));
  CHECK(value == NULL || memcmp(found, value, size) == 0);
  nacre_free(found);
}

/// What an iteration over a batch has seen, as text.
static inline void NotePut(void* state, const char* key, size_t key_size, const char* value,
                           size_t value_size) {
  sprintf((char*)state + strlen(state), "+%.*s=%.*s", (int)key_size, key, (int)value_size, value);
}

static inline void NoteDelete(void* state, const char* key, size_t key_size) {
  sprintf((char*)state + strlen(state), "-%.*s", (int)key_size, key);
}

static inline void CheckAt(const nacre_iterator_t* iterator, const char* key, const char* value) {
  CHECK(nacre_iter_valid(iterator));
  size_t size = 0;
  const char* found = nacre_iter_key(iterator, &size);
  CHECK(size == strlen(key) && memcmp(found, key, size) == 0);
  found = nacre_iter_value(iterator, &size);
  CHECK(size == strlen(value) && memcmp(found, value, size) == 0);
}

/// All that takes a column family. `pearls` is another open database.
void TestFamilies(nacre_t* pearls);
