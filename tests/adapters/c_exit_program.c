// Goal: a program in C may end with a database open and its threads busy.
// Method: as tests/integration/exit_test.cc: `exit` is held up, by what was registered before the
// library was used, while all threads go on. argv[1] names the pool.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "nacre/c.h"
#include "tests/adapters/c_client.h"

static atomic_long rounds;

static void Linger(void) { usleep(2500 * 1000); }

static void* Work(void* argument) {
  nacre_t* db = argument;
  static const char kValue[1000] = "value";
  char* failure = NULL;
  for (;;) {
    char key[32];
    const long round = atomic_fetch_add(&rounds, 1);
    const size_t size = (size_t)snprintf(key, sizeof(key), "key%ld", round % 5000);
    nacre_put(db, writes, key, size, kValue, sizeof(kValue), &failure);
    size_t found_size = 0;
    char* found = nacre_get(db, reads, key, size, &found_size, &failure);
    if (failure != NULL || found_size != sizeof(kValue)) _exit(1);  // `exit` is under way.
    nacre_free(found);
    usleep(1000);
  }
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  CHECK(atexit(&Linger) == 0);
  SetUp(argv[1]);
  nacre_options_set_create_if_missing(options, 1);
  nacre_options_set_write_buffer_size(options, 512 << 10);
  nacre_t* db = nacre_open(options, "left open", &error);
  CHECK_OK(error);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, &Work, db) == 0);
  }
  while (atomic_load(&rounds) < 200) usleep(1000);
  return 0;
}
