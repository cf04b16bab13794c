#include "server/resp/request_parser.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

/// Bytes that were understood are moved out of the way once there are so many.
constexpr size_t kCompactBytes = size_t{64} << 10;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char Unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

/// Takes a word in quotes, whose first is at `*at`. False without its end, or with more behind it.
bool TakeQuoted(std::string_view line, size_t* at, std::string* word) {
  const char quote = line[(*at)++];
  for (; *at < line.size(); ++*at) {
    const char c = line[*at];
    if (c == quote) {
      ++*at;
      return *at == line.size() || std::isspace(static_cast<unsigned char>(line[*at])) != 0;
    }
    const size_t rest = line.size() - *at;
    if (c != '\\' || rest < 2 || (quote == '\'' && line[*at + 1] != '\'')) {
      word->push_back(c);
    } else if (quote == '"' && rest >= 4 && line[*at + 1] == 'x' && HexDigit(line[*at + 2]) >= 0 &&
               HexDigit(line[*at + 3]) >= 0) {
      word->push_back(static_cast<char>(HexDigit(line[*at + 2]) * 16 + HexDigit(line[*at + 3])));
      *at += 3;
    } else {
      word->push_back(quote == '"' ? Unescaped(line[*at + 1]) : '\'');
      *at += 1;
    }
  }
  return false;
}

}  // namespace

bool SplitWords(std::string_view line, std::vector<std::string>* words) {
  words->clear();
  const auto is_space = [&](size_t i) {
    return std::isspace(static_cast<unsigned char>(line[i])) != 0;
  };
  size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(at)) ++at;
    if (at == line.size()) return true;
    std::string word;
    while (at < line.size() && !is_space(at)) {
      if (line[at] == '"' || line[at] == '\'') {
        if (!TakeQuoted(line, &at, &word)) return false;
        break;
      }
      word.push_back(line[at++]);
    }
    words->push_back(std::move(word));
  }
}

void RequestParser::Append(std::string_view bytes) {
  if (begin_ == buffer_.size() && begin_ == position_) {
    buffer_.clear();
    begin_ = position_ = 0;
  } else if (begin_ >= kCompactBytes && begin_ >= buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    position_ -= begin_;
    begin_ = 0;
  }
  buffer_.append(bytes);
}

RequestParser::Result RequestParser::Fail(std::string error) {
  error_ = std::move(error);
  return Result::kError;
}

RequestParser::Result RequestParser::TakeLine(const char* too_long, std::string_view* line) {
  const size_t end = buffer_.find('\r', position_);
  if (end == std::string::npos) {
    if (buffer_.size() - position_ <= limits_.line_bytes_max) return Result::kMore;
    return Fail(std::string("Protocol error: ") + too_long);
  }
  if (end + 1 == buffer_.size()) return Result::kMore;
  *line = std::string_view(buffer_).substr(position_, end - position_);
  position_ = end + 2;
  return Result::kRequest;
}

RequestParser::Result RequestParser::Next(Request* request) {
  if (!error_.empty()) return Result::kError;
  while (true) {
    if (!in_array_) {
      if (position_ == buffer_.size()) return Result::kMore;
      if (buffer_[position_] != '*') return NextInline(request);
      if (const Result result = BeginArray(); result != Result::kRequest) return result;
      if (!in_array_) continue;  // It was empty, which is no command.
    }
    while (args_left_ > 0) {
      if (const Result result = TakeArgument(); result != Result::kRequest) return result;
    }
    Finish(request);
    return Result::kRequest;
  }
}

RequestParser::Result RequestParser::BeginArray() {
  std::string_view line;
  const Result result = TakeLine("too big mbulk count string", &line);
  if (result != Result::kRequest) return result;
  int64_t count = 0;
  if (!ParseInteger(line.substr(1), &count) || count > static_cast<int64_t>(limits_.args_max)) {
    return Fail("Protocol error: invalid multibulk length");
  }
  if (count <= 0) {
    begin_ = position_;
    return Result::kRequest;
  }
  in_array_ = true;
  args_left_ = static_cast<size_t>(count);
  arguments_.clear();
  return Result::kRequest;
}

RequestParser::Result RequestParser::TakeArgument() {
  if (!in_bulk_) {
    if (position_ == buffer_.size()) return Result::kMore;
    if (buffer_[position_] != '$') {
      return Fail(std::string("Protocol error: expected '$', got '") + buffer_[position_] + "'");
    }
    std::string_view line;
    const Result result = TakeLine("too big bulk count string", &line);
    if (result != Result::kRequest) return result;
    int64_t size = 0;
    if (!ParseInteger(line.substr(1), &size) || size < 0 ||
        size > static_cast<int64_t>(limits_.bulk_bytes_max)) {
      return Fail("Protocol error: invalid bulk length");
    }
    in_bulk_ = true;
    bulk_bytes_ = static_cast<size_t>(size);
  }
  if (buffer_.size() - position_ < bulk_bytes_ + 2) return Result::kMore;
  arguments_.emplace_back(position_ - begin_, bulk_bytes_);
  position_ += bulk_bytes_ + 2;
  in_bulk_ = false;
  --args_left_;
  return Result::kRequest;
}

RequestParser::Result RequestParser::NextInline(Request* request) {
  const size_t end = buffer_.find('\n', position_);
  if (end == std::string::npos) {
    if (buffer_.size() - position_ <= limits_.line_bytes_max) return Result::kMore;
    return Fail("Protocol error: too big inline request");
  }
  std::string_view line = std::string_view(buffer_).substr(position_, end - position_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> words;
  if (!SplitWords(line, &words)) {
    return Fail("Protocol error: unbalanced quotes in request");
  }
  position_ = begin_ = end + 1;
  if (words.empty()) return Next(request);
  request->bytes.clear();
  request->args.clear();
  for (const std::string& word : words) {
    request->bytes.insert(request->bytes.end(), word.begin(), word.end());
  }
  const char* at = request->bytes.data();
  for (const std::string& word : words) {
    request->args.emplace_back(at, word.size());
    at += word.size();
  }
  return Result::kRequest;
}

void RequestParser::Finish(Request* request) {
  const char* const bytes = buffer_.data();
  request->bytes.assign(bytes + begin_, bytes + position_);
  request->args.clear();
  request->args.reserve(arguments_.size());
  for (const auto& [offset, size] : arguments_) {
    request->args.emplace_back(request->bytes.data() + offset, size);
  }
  begin_ = position_;
  in_array_ = false;
}

}  // namespace nacre::server
