// Goal: a program in C++ that uses nacre/c.h may have callbacks that throw. The call that met one
// gets an error, whichever thread the callback ran on, and the database goes on.
// Method: a comparator, a merge operator and a filter throw when they meet the key or operand
// "poison" while they are armed. argv[1] names the pool.

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

extern "C" {
#include "nacre/c.h"
#include "nacre/c_callbacks.h"
#include "nacre/c_transactions.h"
#include "tests/adapters/c_client.h"
}

namespace {

std::atomic<bool> armed{false};

void ThrowAt(std::string_view text) {
  if (armed.load() && text == "poison") throw std::runtime_error("met poison");
}

int Compare(void* /*state*/, const char* a, size_t a_size, const char* b, size_t b_size) {
  ThrowAt({a, a_size});
  ThrowAt({b, b_size});
  return std::string_view(a, a_size).compare({b, b_size});
}

char* FullMerge(void* /*state*/, const char* key, size_t key_size, const char* /*value*/,
                size_t /*size*/, const char* const* /*operands*/, const size_t* /*sizes*/,
                int /*count*/, unsigned char* success, size_t* result_size) {
  ThrowAt({key, key_size});
  *success = 1;
  *result_size = 6;
  return strdup("merged");
}

char* PartialMerge(void* /*state*/, const char* /*key*/, size_t /*key_size*/,
                   const char* const* /*operands*/, const size_t* /*sizes*/, int /*count*/,
                   unsigned char* success, size_t* /*result_size*/) {
  *success = 0;
  return nullptr;
}

unsigned char Filter(void* /*state*/, int /*level*/, const char* key, size_t key_size,
                     const char* /*value*/, size_t /*size*/, char** /*new_value*/,
                     size_t* /*new_size*/, unsigned char* /*changed*/) {
  ThrowAt({key, key_size});
  return 0;
}

const char* Name(void* /*state*/) { return "test.Throwing"; }

void Merge(nacre_t* db, const char* key) {
  nacre_merge(db, writes, key, strlen(key), "x", 1, &error);
  CHECK_OK(error);
}

void CheckPoisoned() {
  CHECK(error != nullptr && strstr(error, "met poison") != nullptr);
  CHECK_FAILED(nacre_code_aborted);
}

void Flush(nacre_t* db) {
  nacre_flushoptions_t* flush = nacre_flushoptions_create();
  nacre_flush(db, flush, &error);
  CHECK_OK(error);
  nacre_flushoptions_destroy(flush);
}

void TestComparator() {
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_comparator_t* comparator = nacre_comparator_create(nullptr, nullptr, Compare, Name);
  nacre_options_set_comparator(own, comparator);
  nacre_t* db = nacre_open(own, "ordered", &error);
  CHECK_OK(error);
  for (const char* key : {"a", "poison", "z"}) Put(db, key, "1");
  Flush(db);  // A lookup compares in tables only.
  Put(db, "z", "1");
  nacre_iterator_t* iterator = nacre_create_iterator(db, reads);
  armed = true;
  size_t size = 0;
  CHECK(nacre_get(db, reads, "poison", 6, &size, &error) == nullptr);
  CheckPoisoned();
  nacre_iter_seek(iterator, "poison", 6);
  CHECK(!nacre_iter_valid(iterator));
  nacre_iter_get_error(iterator, &error);
  CheckPoisoned();
  armed = false;
  nacre_iter_seek(iterator, "b", 1);
  CheckAt(iterator, "poison", "1");
  nacre_iter_destroy(iterator);
  armed = true;
  nacre_put(db, writes, "poison", 6, "2", 1, &error);
  CheckPoisoned();
  armed = false;
  CheckValue(db, reads, "poison", "1");
  nacre_close(db);
  // Where there is a log the record may be in it, and then counts.
  db = nacre_open(own, "ordered", &error);
  CHECK_OK(error);
  Put(db, "poison", "3");
  CheckValue(db, reads, "poison", "3");
  nacre_close(db);
  nacre_options_destroy(own);
  nacre_comparator_destroy(comparator);
}

void TestOperatorAndFilter() {
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_mergeoperator_t* merge =
      nacre_mergeoperator_create(nullptr, nullptr, FullMerge, PartialMerge, nullptr, Name);
  nacre_options_set_merge_operator(own, merge);
  nacre_mergeoperator_destroy(merge);
  nacre_compactionfilter_t* filter = nacre_compactionfilter_create(nullptr, nullptr, Filter, Name);
  nacre_options_set_compaction_filter(own, filter);
  nacre_t* db = nacre_open(own, "merged", &error);
  CHECK_OK(error);
  for (const char* key : {"a", "poison"}) {
    Put(db, key, "1");
    Merge(db, key);
  }
  armed = true;
  size_t size = 0;
  CHECK(nacre_get(db, reads, "poison", 6, &size, &error) == nullptr);
  CheckPoisoned();
  CheckValue(db, reads, "a", "merged");
  Flush(db);
  nacre_compactoptions_t* compact = nacre_compactoptions_create();
  nacre_compact_range(db, compact, nullptr, 0, nullptr, 0, &error);
  armed = false;
  nacre_free(error);  // Whether the key was still one that the filter is asked for.
  error = nullptr;
  nacre_compact_range(db, compact, nullptr, 0, nullptr, 0, &error);
  CHECK_OK(error);
  nacre_compactoptions_destroy(compact);
  CheckValue(db, reads, "poison", "merged");
  nacre_close(db);
  nacre_options_destroy(own);
  nacre_compactionfilter_destroy(filter);
}

void TestTransaction() {
  nacre_options_t* own = nacre_options_create_copy(options);
  nacre_comparator_t* comparator = nacre_comparator_create(nullptr, nullptr, Compare, Name);
  nacre_options_set_comparator(own, comparator);
  nacre_transactiondb_options_t* db_options = nacre_transactiondb_options_create();
  nacre_transactiondb_t* db = nacre_transactiondb_open(own, db_options, "locked", &error);
  CHECK_OK(error);
  nacre_transaction_options_t* begin = nacre_transaction_options_create();
  nacre_transaction_t* one = nacre_transaction_begin(db, writes, begin);
  for (const char* key : {"a", "z"}) nacre_transaction_put(one, key, 1, "1", 1, &error);
  CHECK_OK(error);
  armed = true;
  nacre_transaction_put(one, "poison", 6, "1", 1, &error);
  CheckPoisoned();
  armed = false;
  nacre_transaction_put(one, "poison", 6, "2", 1, &error);
  CHECK_OK(error);
  nacre_transaction_commit(one, &error);
  CHECK_OK(error);
  nacre_transaction_destroy(one);
  CheckValue(nacre_transactiondb_get_db(db), reads, "poison", "2");
  nacre_transactiondb_close(db);
  nacre_transaction_options_destroy(begin);
  nacre_transactiondb_options_destroy(db_options);
  nacre_options_destroy(own);
  nacre_comparator_destroy(comparator);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  SetUp(argv[1]);
  nacre_options_set_create_if_missing(options, 1);
  TestComparator();
  TestOperatorAndFilter();
  TestTransaction();
  TearDown();
  return 0;
}
