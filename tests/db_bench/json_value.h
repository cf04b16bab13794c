#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nacre::bench {

/// A JSON value. Asking for what is not there fails the test and answers something empty.
///
/// The parser takes what db_bench writes and is strict about the rest: RFC 8259 but for exponents
/// of more than a double and escapes beyond \u00XX. (Protobuf's would do, were its headers not of
/// another layout than its library under ThreadSanitizer.)
class JsonValue {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  /// A failure if `text` is malformed.
  static JsonValue Parse(std::string_view text) {
    JsonValue value;
    std::string_view rest = text;
    if (!ParseValue(&rest, &value) || (SkipSpace(&rest), !rest.empty())) {
      ADD_FAILURE() << "no JSON at byte " << text.size() - rest.size() << ":\n" << text;
    }
    return value;
  }

  Kind kind() const { return kind_; }
  bool boolean() const {
    EXPECT_EQ(kind_, Kind::kBool);
    return boolean_;
  }
  double number() const {
    EXPECT_EQ(kind_, Kind::kNumber);
    return number_;
  }
  const std::string& string() const {
    EXPECT_EQ(kind_, Kind::kString);
    return string_;
  }
  const std::vector<JsonValue>& array() const {
    EXPECT_EQ(kind_, Kind::kArray);
    return array_;
  }
  const JsonValue& operator[](const std::string& name) const {
    static const JsonValue kNone;
    const auto found = members_.find(name);
    if (found != members_.end()) return found->second;
    ADD_FAILURE() << "no member " << name;
    return kNone;
  }

 private:
  static void SkipSpace(std::string_view* rest) {
    while (!rest->empty() && std::string_view(" \t\r\n").find(rest->front()) != rest->npos) {
      rest->remove_prefix(1);
    }
  }
  static bool Consume(std::string_view* rest, std::string_view token) {
    SkipSpace(rest);
    if (!rest->starts_with(token)) return false;
    rest->remove_prefix(token.size());
    return true;
  }

  static bool ParseValue(std::string_view* rest, JsonValue* value) {
    SkipSpace(rest);
    if (rest->empty()) return false;
    if (rest->front() == '{') return ParseObject(rest, value);
    if (rest->front() == '[') return ParseArray(rest, value);
    if (rest->front() == '"') {
      value->kind_ = Kind::kString;
      return ParseString(rest, &value->string_);
    }
    if (Consume(rest, "null")) return true;
    value->boolean_ = Consume(rest, "true");
    if (value->boolean_ || Consume(rest, "false")) {
      value->kind_ = Kind::kBool;
      return true;
    }
    return ParseNumber(rest, value);
  }

  static bool ParseObject(std::string_view* rest, JsonValue* value) {
    value->kind_ = Kind::kObject;
    Consume(rest, "{");
    if (Consume(rest, "}")) return true;
    do {
      std::string name;
      SkipSpace(rest);
      if (!ParseString(rest, &name) || !Consume(rest, ":")) return false;
      const auto [member, is_new] = value->members_.try_emplace(name);
      if (!is_new || !ParseValue(rest, &member->second)) return false;
    } while (Consume(rest, ","));
    return Consume(rest, "}");
  }

  static bool ParseArray(std::string_view* rest, JsonValue* value) {
    value->kind_ = Kind::kArray;
    Consume(rest, "[");
    if (Consume(rest, "]")) return true;
    do {
      if (!ParseValue(rest, &value->array_.emplace_back())) return false;
    } while (Consume(rest, ","));
    return Consume(rest, "]");
  }

  static bool ParseString(std::string_view* rest, std::string* text) {
    if (!rest->starts_with('"')) return false;
    rest->remove_prefix(1);
    while (!rest->empty() && rest->front() != '"') {
      char c = rest->front();
      if (static_cast<unsigned char>(c) < 0x20) return false;
      rest->remove_prefix(1);
      if (c == '\\') {
        if (rest->starts_with("u00") && rest->size() >= 5) {
          c = static_cast<char>(std::stoi(std::string(rest->substr(3, 2)), nullptr, 16));
          rest->remove_prefix(5);
        } else if (rest->starts_with('"') || rest->starts_with('\\')) {
          c = rest->front();
          rest->remove_prefix(1);
        } else {
          return false;
        }
      }
      text->push_back(c);
    }
    return Consume(rest, "\"");
  }

  static bool ParseNumber(std::string_view* rest, JsonValue* value) {
    const size_t size = std::min(rest->find_first_not_of("+-.0123456789eE"), rest->size());
    const std::string digits(rest->substr(0, size));
    const size_t first = digits.starts_with('-') ? 1 : 0;
    char* end = nullptr;
    value->kind_ = Kind::kNumber;
    value->number_ = std::strtod(digits.c_str(), &end);
    rest->remove_prefix(size);
    return size > first && std::isdigit(static_cast<unsigned char>(digits[first])) != 0 &&
           *end == '\0';
  }

  Kind kind_ = Kind::kNull;
  bool boolean_ = false;
  double number_ = 0;
  std::string string_;
  std::vector<JsonValue> array_;
  std::map<std::string, JsonValue> members_;
};

}  // namespace nacre::bench
