#pragma once

#include <string>
#include <vector>

#include "sqlite/row/schema.h"
#include "sqlite/sqlite_api.h"

namespace nacre::sqlite {

/// The ranges of keys that hold all rows which a plan (sqlite/query/plan.h) and the values of its
/// constraints select, one after the other in the order of the keys. They do not overlap. A list of
/// values stands for a range each, or, in a key with two lists, for one of each pair.
///
/// SQLite converts both sides of a comparison by the types of columns on either side, but does not
/// tell a virtual table of the other side's. Against a column with a numeric type the outcome is
/// the same with all of them. Otherwise a number may be compared as one, and then equals the texts
/// that read as it: these are a range of their own, since they all begin with a character that is
/// less than ':'. SQLite looks at the rows again.
///
/// Thread safety: none.
class KeyRanges {
 public:
  /// `keys` must stay. `arguments`: as the plan orders them; `*used`: how many were. An SQLite
  /// code.
  int Reset(const KeySpace& keys, const char* plan, bool backwards, sqlite3_value** arguments,
            size_t* used);

  /// No row can be selected.
  bool empty() const { return empty_; }
  /// All that is selected is keys that are unique, as a whole: `begin` of each range.
  bool only_keys() const { return only_keys_; }
  bool one_key() const { return only_keys_ && levels_.empty(); }

  /// Goes to the next one, at first to the first one; false behind the last one.
  bool Next();
  /// Includes the space. It belongs to the range that `Next` went to; with `one_key`, it is valid
  /// before that, too.
  std::string& begin() { return begin_; }
  const std::string& end() const { return end_; }

 private:
  /// What may follow in a key behind the parts before it. `end` empty: no end.
  struct Choice {
    std::string begin{};
    std::string end{};
    bool is_point = false;  ///< `begin` is a value.

    bool ContainsBeginOf(const Choice& other) const;
  };
  using Choices = std::vector<Choice>;

  void AddEqualPart(const KeyPart& part, char kind, sqlite3_value* argument);
  int AddListedPart(const KeyPart& part, sqlite3_value* argument);
  /// All that is equal to `argument`.
  void AddEqual(const KeyPart& part, bool constant, bool listed, sqlite3_value* argument,
                Choices* choices);
  /// Number of arguments that the bounds take.
  size_t AddBounds(const KeyPart& part, const char* bounds, bool constant,
                   sqlite3_value** arguments);
  void AddPattern(const KeyPart& part, char kind, sqlite3_value* argument);
  /// Adds choices in the order of the part, without overlaps.
  void AddLevel(const KeyPart& part, Choices choices);
  bool Step();

  bool backwards_ = false;
  bool empty_ = false;
  bool only_keys_ = false;
  bool has_null_ = false;
  bool has_interval_ = false;
  bool started_ = false;
  size_t prefix_size_ = 0;  ///< Size of the prefix of `begin_` that all ranges share.
  std::vector<Choices> levels_;
  std::vector<size_t> at_;
  size_t depth_ = 0;  ///< The level that ended the current range.
  std::string begin_;
  std::string end_;
};

}  // namespace nacre::sqlite
