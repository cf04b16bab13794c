#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/task.h"
#include "server/session/command.h"
#include "server/store/unit_of_work.h"

namespace nacre::server {

/// A hash, list, set or sorted set that a command looks at or changes: its meta row, and where its
/// elements are. A key that is not there is a collection without elements.
///
///     Collection hash(call, call.arg(1), Type::kHash);
///     const bool found = co_await hash.Find();
///     if (!found) co_return;  // It is of another type, which was answered.
///
/// Thread safety: none.
class Collection {
 public:
  /// `key` has to stay.
  Collection(Call& call, std::string_view key, Type type)
      : Collection(call, call.database, key, type) {}
  Collection(Call& call, int database, std::string_view key, Type type)
      : call_(&call), database_(database), key_(key), type_(type) {}

  /// Answers an error and false if the key is of another type.
  Task<bool> Find();
  /// The same for what is to be taken from: once the command has waited, a key of another type is
  /// as one that is not there.
  Task<bool> FindToTake();
  /// The same without an answer, for commands that take several types.
  void Adopt(const std::optional<Meta>& meta);

  std::string_view key() const { return key_; }
  bool there() const { return there_; }
  uint64_t size() const { return there_ || made_ ? meta_.count : 0; }
  Meta& meta() { return meta_; }

  std::string Row(const std::string& sub_key) const { return prefix_ + sub_key; }
  /// The sub-key of one of its rows.
  Slice SubKey(const std::string& row) const;
  Task<std::optional<std::string>> Get(const std::string& sub_key);
  Task<std::vector<std::optional<std::string>>> MultiGet(const std::vector<std::string>& sub_keys);
  /// The rows of a range of sub-keys.
  Task<std::vector<nacre::server::Row>> Scan(RowRange sub_keys);
  /// All fields of a hash, or all members of a set or sorted set, in their order.
  Task<std::vector<nacre::server::Row>> ScanFields();

  /// Makes an empty one for a key that is not there; before the first Put.
  void Make();
  void Put(const std::string& sub_key, std::string value);
  void Delete(const std::string& sub_key);
  /// Stores the meta row, with `count` elements; without any the key is gone.
  void Save(uint64_t count);
  /// Its elements were changed, and the meta row was not.
  void Touch() { call_->unit->Touch(database_, key_); }
  /// Deletes the key and all its elements.
  void Remove();

 private:
  Call* call_;
  int database_;
  std::string_view key_;
  Type type_;
  bool there_ = false;
  bool made_ = false;
  Meta meta_;
  std::string prefix_;
};

/// The bytes of the field or member that a row is for.
std::string_view FieldOf(const Collection& collection, const std::string& row);

/// `count` numbers below `size`, in random order: different ones, if `distinct`.
std::vector<size_t> RandomIndexes(Call& call, size_t size, size_t count, bool distinct);

/// The optional COUNT of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER, as argument `at`: negative ones
/// may give an element more than once. Answers an error and false if it is malformed.
bool RandomCountArgument(Call& call, size_t at, int64_t* count);

/// HSCAN, SSCAN and ZSCAN: answers what `answer` adds for each row, which is one or two elements.
Task<void> ScanCollection(Call& call, Type type, size_t elements_each,
                          void (*answer)(Call& call, std::string_view field,
                                         const std::string& value));

}  // namespace nacre::server
