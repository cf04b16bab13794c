#include "sqlite/query/key_distribution.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sqlite/query/merged_iterator.h"
#include "util/coding.h"

namespace nacre::sqlite {
namespace {

constexpr char kVersion = 1;
constexpr double kScale = 16;

const KeySpace& SpaceAt(const Schema& schema, size_t number) {
  return schema.key_space(static_cast<int>(number));
}

/// Counts the different values of the first parts of keys that come in order.
class PrefixCounter {
 public:
  explicit PrefixCounter(const KeySpace& keys) : keys_(keys), distinct_(keys.parts.size()) {}

  Status Add(const Slice& key) {
    ++entries_;
    Slice rest = key;
    bool equal = true;
    for (size_t place = 0; place < distinct_.size(); ++place) {
      const char* const begin = rest.data();
      if (!SkipValue(&rest, keys_.parts[place].descending)) {
        return Status::Corruption("a key cannot be decoded");
      }
      const size_t from = static_cast<size_t>(begin - key.data());
      const size_t size = static_cast<size_t>(rest.data() - begin);
      equal = equal && last_.compare(from, size, begin, size) == 0;
      if (!equal) ++distinct_[place];
    }
    last_.assign(key.data(), key.size());
    return Status::OK();
  }

  std::vector<double> EqualEntries() const {
    std::vector<double> result;
    for (const uint64_t distinct : distinct_) {
      result.push_back(static_cast<double>(entries_) /
                       static_cast<double>(std::max<uint64_t>(distinct, 1)));
    }
    return result;
  }
  uint64_t entries() const { return entries_; }

 private:
  const KeySpace& keys_;
  uint64_t entries_ = 0;
  std::vector<uint64_t> distinct_;
  std::string last_;
};

Status CountSpace(const ReadView& view, const KeySpace& keys, uint64_t limit,
                  std::vector<double>* equal_entries) {
  std::string begin;
  AppendSpace(keys.space, &begin);
  MergedIterator iterator;
  PrefixCounter counter(keys);
  for (iterator.Open(view, begin, PrefixEnd(begin), /*backwards=*/false);
       iterator.Valid() && (limit == 0 || counter.entries() < limit); iterator.Next()) {
    NACRE_RETURN_IF_ERROR(counter.Add(iterator.key()));
  }
  *equal_entries = counter.EqualEntries();
  return iterator.status();
}

}  // namespace

std::string KeyDistribution::Encode() const {
  std::string output(1, kVersion);
  PutVarint32(&output, static_cast<uint32_t>(equal_entries.size()));
  for (const std::vector<double>& parts : equal_entries) {
    PutVarint32(&output, static_cast<uint32_t>(parts.size()));
    for (const double entries : parts) {
      PutVarint64(&output, static_cast<uint64_t>(std::llround(entries * kScale)));
    }
  }
  return output;
}

Status KeyDistribution::Decode(const Schema& schema, Slice input) {
  const Status malformed = Status::Corruption("catalogue: counts of " + schema.name);
  if (input.empty() || input[0] != kVersion) return malformed;
  input.remove_prefix(1);
  uint32_t spaces;
  if (!GetVarint32(&input, &spaces) || spaces != schema.indexes.size() + 1) return malformed;
  equal_entries.resize(spaces);
  for (size_t space = 0; space < spaces; ++space) {
    uint32_t parts;
    if (!GetVarint32(&input, &parts)) return malformed;
    if (parts != SpaceAt(schema, space).parts.size()) return malformed;
    equal_entries[space].resize(parts);
    for (double& entries : equal_entries[space]) {
      uint64_t scaled;
      if (!GetVarint64(&input, &scaled)) return malformed;
      entries = static_cast<double>(scaled) / kScale;
    }
  }
  return input.empty() ? Status::OK() : malformed;
}

Status CountKeys(const ReadView& view, const Schema& schema, uint64_t limit,
                 KeyDistribution* distribution) {
  distribution->equal_entries.resize(schema.indexes.size() + 1);
  for (size_t space = 0; space < distribution->equal_entries.size(); ++space) {
    NACRE_RETURN_IF_ERROR(
        CountSpace(view, SpaceAt(schema, space), limit, &distribution->equal_entries[space]));
  }
  return Status::OK();
}

Status FindDistribution(const ReadView& view, const Schema& schema,
                        std::shared_ptr<const KeyDistribution>* distribution) {
  PinnableSlice value;
  const Status status = view.Get(CatalogueKey('d', schema.primary.space), &value);
  if (status.IsNotFound()) return Status::OK();
  NACRE_RETURN_IF_ERROR(status);
  auto found = std::make_shared<KeyDistribution>();
  NACRE_RETURN_IF_ERROR(found->Decode(schema, value));
  *distribution = std::move(found);
  return Status::OK();
}

Status WriteDistribution(const Schema& schema, const KeyDistribution& distribution) {
  std::shared_ptr<Database> database;
  NACRE_RETURN_IF_ERROR(Database::Open(schema.declaration.database, &database));
  Transaction transaction(std::move(database));
  transaction.Begin();
  transaction.Put(CatalogueKey('d', schema.primary.space), distribution.Encode());
  NACRE_RETURN_IF_ERROR(transaction.Prepare());
  transaction.Commit();
  return Status::OK();
}

}  // namespace nacre::sqlite
