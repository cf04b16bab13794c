// Goal: a program that is linked with libnacre_c.so may have SQLite load Nacre's extension too: two
// copies of Nacre in one process, which use one pool.
// Method: writes to a database and to a table of the extension in turns, reads both, and ends with
// 0 if all was right. argv[1] names the pool, of nodes that are other processes; argv[2] is the
// extension.

#include <sqlite3.h>

#include "nacre/c.h"
#include "tests/adapters/c_client.h"

enum { kRows = 200 };

static void Execute(sqlite3* connection, const char* statement) {
  char* message = NULL;
  if (sqlite3_exec(connection, statement, NULL, NULL, &message) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", statement, message);
    exit(1);
  }
}

static int CheckCount(void* state, int columns, char** values, char** names) {
  (void)names;
  CHECK(columns == 1 && atoi(values[0]) == kRows);
  ++*(int*)state;
  return 0;
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  SetUp(argv[1]);
  nacre_options_set_create_if_missing(options, 1);
  nacre_t* db = nacre_open(options, "pearls", &error);
  CHECK_OK(error);

  sqlite3* connection = NULL;
  CHECK(sqlite3_open(":memory:", &connection) == SQLITE_OK);
  CHECK(sqlite3_enable_load_extension(connection, 1) == SQLITE_OK);
  char* message = NULL;
  if (sqlite3_load_extension(connection, argv[2], NULL, &message) != SQLITE_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  char statement[1024];
  snprintf(statement, sizeof(statement),
           "CREATE VIRTUAL TABLE shells USING nacre(pool='%s', id INTEGER PRIMARY KEY, name TEXT)",
           argv[1]);
  Execute(connection, statement);
  for (int i = 0; i < kRows; ++i) {
    char key[16];
    snprintf(key, sizeof(key), "%05d", i);
    Put(db, key, "a value");
    snprintf(statement, sizeof(statement), "INSERT INTO shells VALUES(%d, 'v%d')", i, i);
    Execute(connection, statement);
  }
  int answers = 0;
  CHECK(sqlite3_exec(connection, "SELECT count(*) FROM shells WHERE name LIKE 'v%'", CheckCount,
                     &answers, NULL) == SQLITE_OK);
  CHECK(answers == 1);
  nacre_iterator_t* iterator = nacre_create_iterator(db, reads);
  int found = 0;
  nacre_iter_seek_to_first(iterator);
  for (; nacre_iter_valid(iterator); nacre_iter_next(iterator)) ++found;
  nacre_iter_destroy(iterator);
  CHECK(found == kRows);
  // The name is taken in one copy as it is in the other.
  CHECK(nacre_open(options, "sqlite", &error) == NULL);
  CHECK_FAILED(nacre_code_busy);

  CHECK(sqlite3_close(connection) == SQLITE_OK);
  nacre_close(db);
  TearDown();
  puts("all is well");
  return 0;
}
