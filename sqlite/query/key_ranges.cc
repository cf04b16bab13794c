#include "sqlite/query/key_ranges.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "sqlite/query/plan.h"

namespace nacre::sqlite {
namespace {

/// Texts that read as numbers begin with white space, a digit, a sign or a point.
constexpr char kAfterNumbers[] = ":";

std::string TextPrefix(const Slice& prefix, Collation collation) {
  std::string key;
  AppendTextPrefix(prefix, collation, &key);
  return key;
}

std::string Encoded(const Value& value, Collation collation) {
  std::string key;
  AppendValue(value, collation, &key);
  return key;
}

bool IsNumber(const Value& value) {
  return value.type == ValueType::kInteger || value.type == ValueType::kReal;
}

bool MayReadAsNumber(const Value& value) {
  return value.type == ValueType::kText &&
         (value.bytes.empty() || static_cast<unsigned char>(value.bytes[0]) < kAfterNumbers[0]);
}

/// The value that `argument` is compared as, if nothing is known of its type.
Value ComparedValue(const KeyPart& part, sqlite3_value* argument) {
  return StoredValue(argument, IsNumeric(part.affinity) ? Affinity::kNumeric : Affinity::kBlob);
}

/// The end of what `begin` begins, in a part whose bytes are inverted: what is less than `bytes`
/// is greater than this.
std::string InvertedBound(std::string bytes) {
  if (bytes.empty()) return bytes;
  Invert(0, &bytes);
  return PrefixEnd(bytes);
}

/// Beginnings of all texts that match a pattern of LIKE whose literal part is `prefix`: both cases
/// of its first letters, if the order of the keys tells them apart.
std::vector<std::string> CasesOf(const Slice& prefix, Collation collation) {
  constexpr size_t kCasesMax = 4;
  std::vector<std::string> cases = {""};
  for (const char c : prefix) {
    const unsigned char byte = static_cast<unsigned char>(c);
    const bool letter = byte < 0x80 && std::isalpha(byte) != 0;
    if (letter && collation != Collation::kNoCase) {
      if (cases.size() == kCasesMax) break;
      const size_t count = cases.size();
      for (size_t i = 0; i < count; ++i) {
        cases.push_back(cases[i] + static_cast<char>(std::toupper(byte)));
        cases[i] += static_cast<char>(std::tolower(byte));
      }
    } else {
      for (std::string& text : cases) text += c;
    }
  }
  return cases;
}

}  // namespace

bool KeyRanges::Choice::ContainsBeginOf(const Choice& other) const {
  if (is_point) return other.is_point && begin == other.begin;
  return end.empty() || other.begin < end;
}

int KeyRanges::Reset(const KeySpace& keys, const char* plan, bool backwards,
                     sqlite3_value** arguments, size_t* used) {
  backwards_ = backwards;
  empty_ = has_null_ = has_interval_ = started_ = false;
  levels_.clear();
  begin_.clear();
  AppendSpace(keys.space, &begin_);
  size_t place = 0;
  for (; plan[place] != '|'; ++place) {
    const KeyPart& part = keys.parts[place];
    if (plan[place] == 'n') {
      const int code = AddListedPart(part, arguments[place]);
      if (code != SQLITE_OK) return code;
    } else {
      AddEqualPart(part, plan[place], arguments[place]);
    }
  }
  *used = place;
  const char* const scan = plan + place + 1;
  const bool constant = scan[Plan::kConstant] == 'K';
  if (scan[Plan::kPattern] != '-') {
    AddPattern(keys.parts[place], scan[Plan::kPattern], arguments[(*used)++]);
  } else if (scan[Plan::kLower] != '-' || scan[Plan::kUpper] != '-') {
    *used += AddBounds(keys.parts[place], scan, constant, arguments + place);
  }
  if (levels_.empty()) prefix_size_ = begin_.size();
  only_keys_ = keys.unique && place == keys.parts.size() && !has_null_ && !has_interval_;
  return SQLITE_OK;
}

void KeyRanges::AddEqualPart(const KeyPart& part, char kind, sqlite3_value* argument) {
  const bool constant = kind == 'E' || kind == 'I';
  const bool is = kind == 'i' || kind == 'I';
  if (sqlite3_value_type(argument) == SQLITE_NULL && !is) {
    empty_ = true;
    return;
  }
  // Most often one value is equal, and nothing is chosen before it.
  if (levels_.empty() && (IsNumeric(part.affinity) || constant)) {
    const Value value = ComparedValue(part, argument);
    has_null_ = has_null_ || value.IsNull();
    part.Append(value, &begin_);
    return;
  }
  Choices choices;
  AddEqual(part, constant, /*listed=*/false, argument, &choices);
  if (levels_.empty() && choices.size() == 1) {
    if (part.descending) Invert(0, &choices[0].begin);
    begin_ += choices[0].begin;
    return;
  }
  AddLevel(part, std::move(choices));
}

int KeyRanges::AddListedPart(const KeyPart& part, sqlite3_value* argument) {
  Choices choices;
  sqlite3_value* value = nullptr;
  int code = sqlite3_vtab_in_first(argument, &value);
  for (; code == SQLITE_OK; code = sqlite3_vtab_in_next(argument, &value)) {
    // NULL is equal to nothing.
    if (sqlite3_value_type(value) == SQLITE_NULL) continue;
    AddEqual(part, /*constant=*/false, /*listed=*/true, value, &choices);
  }
  if (code != SQLITE_DONE) return code;
  empty_ = empty_ || choices.empty();
  AddLevel(part, std::move(choices));
  return SQLITE_OK;
}

void KeyRanges::AddEqual(const KeyPart& part, bool constant, bool listed, sqlite3_value* argument,
                         Choices* choices) {
  const Collation collation = part.collation;
  const Value value = ComparedValue(part, argument);
  has_null_ = has_null_ || value.IsNull();
  const bool known = constant || IsNumeric(part.affinity);
  // SQLite has converted the values of a list for both sides.
  const bool number_as_text =
      !known && !listed && part.affinity == Affinity::kBlob && MayReadAsNumber(value);
  if (!known && (IsNumber(value) || number_as_text)) {
    has_interval_ = true;
    choices->push_back({TextPrefix("", collation), TextPrefix(kAfterNumbers, collation), false});
  }
  if (number_as_text) {
    const std::string zero = Encoded(Value::Integer(0), collation);
    choices->push_back({zero.substr(0, 1), TextPrefix("", collation), false});
  }
  const bool as_text = part.affinity == Affinity::kText && IsNumber(value);
  choices->push_back(
      {Encoded(as_text ? StoredValue(argument, Affinity::kText) : value, collation), "", true});
}

size_t KeyRanges::AddBounds(const KeyPart& part, const char* bounds, bool constant,
                            sqlite3_value** arguments) {
  const Collation collation = part.collation;
  const bool known = constant || IsNumeric(part.affinity);
  size_t used = 0;
  Choice range;
  AppendAfterNull(&range.begin);  // NULL is in no range.
  Choices choices;
  const char lower = bounds[Plan::kLower];
  const char upper = bounds[Plan::kUpper];
  if (lower != '-') {
    sqlite3_value* const argument = arguments[used++];
    const Value value = ComparedValue(part, argument);
    // Texts that read as numbers may follow in another order.
    const bool in_order =
        part.affinity == Affinity::kText ? !IsNumber(value) : !MayReadAsNumber(value);
    if (lower != '!' && value.IsNull()) empty_ = true;
    if (lower != '!' && (known || in_order)) {
      range.begin = Encoded(value, collation);
      if (lower == '>') range.begin = PrefixEnd(range.begin);
    }
  }
  if (upper != '-') {
    sqlite3_value* const argument = arguments[used++];
    Value value = ComparedValue(part, argument);
    if (value.IsNull()) empty_ = true;
    const std::string numbers_end = TextPrefix(kAfterNumbers, collation);
    const bool number = IsNumber(value);
    if (number && part.affinity == Affinity::kText) value = StoredValue(argument, Affinity::kText);
    if (known || part.affinity == Affinity::kText || !MayReadAsNumber(value)) {
      range.end = Encoded(value, collation);
      if (upper == 'l') range.end = PrefixEnd(range.end);
      // Texts that read as numbers may be less than all others, and less than a number.
      if (!known && number && part.affinity == Affinity::kBlob) {
        choices.push_back({TextPrefix("", collation), numbers_end, false});
      } else if (!known && range.end < numbers_end) {
        range.end = numbers_end;
      }
    }
  }
  choices.push_back(std::move(range));
  AddLevel(part, std::move(choices));
  return used;
}

void KeyRanges::AddPattern(const KeyPart& part, char kind, sqlite3_value* argument) {
  Choices choices;
  const Value pattern = StoredValue(argument, Affinity::kText);
  if (pattern.type != ValueType::kText) {
    empty_ = empty_ || pattern.IsNull();
    return;
  }
  const std::string text = pattern.bytes.ToString();
  const bool like = kind == 'L';
  const std::string prefix = text.substr(0, text.find_first_of(like ? "%_" : "*?["));
  const std::vector<std::string> cases =
      like ? CasesOf(prefix, part.collation) : std::vector<std::string>{prefix};
  for (const std::string& one : cases) {
    const std::string begin = TextPrefix(one, part.collation);
    choices.push_back({begin, PrefixEnd(begin), false});
  }
  // A blob is matched as if it were a text.
  std::string blobs;
  AppendBeforeBlobs(&blobs);
  choices.push_back({blobs, "", false});
  AddLevel(part, std::move(choices));
}

void KeyRanges::AddLevel(const KeyPart& part, Choices choices) {
  if (levels_.empty()) prefix_size_ = begin_.size();
  if (part.descending) {
    for (Choice& choice : choices) {
      if (choice.is_point) {
        Invert(0, &choice.begin);
      } else {
        std::string begin = InvertedBound(std::move(choice.end));
        choice.end = InvertedBound(std::move(choice.begin));
        choice.begin = std::move(begin);
      }
    }
  }
  std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
    const int order = a.begin.compare(b.begin);
    return order != 0 ? order < 0 : !a.is_point && b.is_point;
  });
  Choices& level = levels_.emplace_back();
  for (Choice& choice : choices) {
    has_interval_ = has_interval_ || !choice.is_point;
    if (!choice.is_point && !choice.end.empty() && choice.end <= choice.begin) continue;
    if (level.empty() || !level.back().ContainsBeginOf(choice)) {
      level.push_back(std::move(choice));
      continue;
    }
    Choice& last = level.back();
    if (choice.is_point || last.end.empty()) continue;
    if (choice.end.empty() || last.end < choice.end) last.end = std::move(choice.end);
  }
  empty_ = empty_ || level.empty();
}

bool KeyRanges::Step() {
  const auto first = [this](size_t level) { return backwards_ ? levels_[level].size() - 1 : 0; };
  if (!started_) {
    started_ = true;
    at_.resize(levels_.size());
    for (size_t level = 0; level < levels_.size(); ++level) at_[level] = first(level);
    return !empty_;
  }
  for (size_t level = std::min(depth_ + 1, levels_.size()); level-- > 0;) {
    const bool last = backwards_ ? at_[level] == 0 : at_[level] + 1 == levels_[level].size();
    if (last) continue;
    at_[level] = backwards_ ? at_[level] - 1 : at_[level] + 1;
    for (size_t deeper = level + 1; deeper < levels_.size(); ++deeper) at_[deeper] = first(deeper);
    return true;
  }
  return false;
}

bool KeyRanges::Next() {
  if (!Step()) return false;
  begin_.resize(prefix_size_);
  for (depth_ = 0; depth_ < levels_.size(); ++depth_) {
    const Choice& choice = levels_[depth_][at_[depth_]];
    if (!choice.is_point) {
      end_ = choice.end.empty() ? PrefixEnd(begin_) : begin_ + choice.end;
      begin_ += choice.begin;
      return true;
    }
    begin_ += choice.begin;
  }
  if (!only_keys_) end_ = PrefixEnd(begin_);
  return true;
}

}  // namespace nacre::sqlite
