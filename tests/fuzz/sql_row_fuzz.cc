// Rows and keys of SQL tables, as they lie in memory: any bytes are read as both without reading
// beyond them, in whichever order, and what was read is written as a key that reads the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "sqlite/row/key_encoding.h"
#include "sqlite/row/row_encoding.h"
#include "sqlite/row/stored_row.h"
#include "util/coding.h"

namespace {

using nacre::Slice;
using nacre::sqlite::Affinity;
using nacre::sqlite::Collation;
using nacre::sqlite::Value;

/// Bit for bit: NaN is the same as itself.
bool Same(const Value& a, const Value& b) {
  std::string one;
  std::string other;
  nacre::sqlite::AppendValue(a, Collation::kBinary, &one);
  nacre::sqlite::AppendValue(b, Collation::kBinary, &other);
  return a.type == b.type && one == other;
}

/// Values of `bytes` until they are no key any more.
std::vector<Value> ReadKey(Slice bytes, bool descending, Affinity affinity,
                           std::vector<std::string>* scratches) {
  std::vector<Value> values;
  // Values view their scratch, which must not move.
  scratches->resize(bytes.size());
  while (values.size() < scratches->size()) {
    Slice skipped = bytes;
    const bool skips = nacre::sqlite::SkipValue(&skipped, descending);
    Value value;
    std::string* const scratch = &(*scratches)[values.size()];
    if (nacre::sqlite::ReadValue(&bytes, descending, affinity, scratch, &value) != skips) {
      std::abort();
    }
    if (!skips) break;
    if (skipped.size() != bytes.size()) std::abort();
    values.push_back(value);
  }
  return values;
}

void ReadAndWriteKey(const Slice& bytes, bool descending, Affinity affinity) {
  std::vector<std::string> scratches;
  const std::vector<Value> values = ReadKey(bytes, descending, affinity, &scratches);
  const nacre::sqlite::KeyPart part = {0, affinity, Collation::kBinary, true, descending};
  std::string key;
  for (const Value& value : values) part.Append(value, &key);
  std::vector<std::string> more_scratches;
  const std::vector<Value> again = ReadKey(key, descending, affinity, &more_scratches);
  if (again.size() != values.size()) std::abort();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!Same(values[i], again[i])) std::abort();
  }
}

/// Reads the slots in the order that `order` has, and knows a slot again.
void ReadRow(const Slice& row, int slots, const Slice& order) {
  nacre::sqlite::RowReader reader;
  reader.Reset(row, slots);
  for (const char c : order) {
    const int slot = static_cast<unsigned char>(c) % (slots + 1);
    Value value;
    const bool read = reader.Read(slot, &value);
    nacre::sqlite::RowReader other;
    other.Reset(row, slots);
    Value same;
    if (other.Read(slot, &same) != read) std::abort();
    if (read && !Same(value, same)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Slice bytes(reinterpret_cast<const char*>(data), size);
  for (const Affinity affinity : {Affinity::kBlob, Affinity::kInteger, Affinity::kReal}) {
    ReadAndWriteKey(bytes, /*descending=*/false, affinity);
    ReadAndWriteKey(bytes, /*descending=*/true, affinity);
  }
  const nacre::sqlite::KeySpace index = {
      .space = 1,
      .parts = {{0, Affinity::kBlob, Collation::kBinary, false, false},
                {1, Affinity::kText, Collation::kNoCase, false, true}}};
  if (size >= nacre::sqlite::kSpaceBytes) {
    Slice primary_key;
    nacre::sqlite::PrimaryKeyOf(index, bytes, Slice(), &primary_key).IgnoreError();
  }
  if (size < 2) return 0;
  const size_t orders = data[1] % 16;
  if (size < 2 + orders) return 0;
  ReadRow(Slice(bytes.data() + 2 + orders, size - 2 - orders), data[0] % 8,
          Slice(bytes.data() + 2, orders));
  return 0;
}
