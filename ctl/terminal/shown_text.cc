#include "ctl/terminal/shown_text.h"

#include <algorithm>

namespace nacre::ctl {
namespace {

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Bytes of the code point that begins with `first`; 0 if none does.
size_t CodePointBytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  if (first >= 0xF0 && first < 0xF5) return 4;
  return 0;
}

/// Bytes of the character at the beginning of `text`; 0 if it must not be shown.
size_t ShownBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7F) return 0;
  const size_t bytes = CodePointBytes(first);
  if (bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  // The control characters of Latin-1.
  if (first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) return 0;
  return bytes;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = ShownBytes(text);
    printable += bytes == 0 ? std::string_view("?") : text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return printable;
}

size_t ColumnsOf(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !IsContinuation(byte); }));
}

std::string Clip(std::string_view text, size_t columns) {
  if (ColumnsOf(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  size_t end = 0;
  for (size_t column = 0; column + 1 < columns; ++column) {
    ++end;
    while (end < text.size() && IsContinuation(text[end])) ++end;
  }
  return std::string(text.substr(0, end)) + "~";
}

std::string ClipFront(std::string_view text, size_t columns) {
  if (ColumnsOf(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  size_t begin = text.size();
  for (size_t column = 0; column + 1 < columns && begin > 0; ++column) {
    --begin;
    while (begin > 0 && IsContinuation(text[begin])) --begin;
  }
  std::string clipped(text.begin() + begin, text.end());
  clipped.insert(clipped.begin(), '~');
  return clipped;
}

std::string PadRight(std::string_view text, size_t columns) {
  const size_t taken = ColumnsOf(text);
  return std::string(text) + std::string(columns > taken ? columns - taken : 0, ' ');
}

std::string PadLeft(std::string_view text, size_t columns) {
  const size_t taken = ColumnsOf(text);
  return std::string(columns > taken ? columns - taken : 0, ' ') + std::string(text);
}

}  // namespace nacre::ctl
