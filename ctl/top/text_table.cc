#include "ctl/top/text_table.h"

#include <algorithm>

#include "ctl/terminal/shown_text.h"

namespace nacre::ctl {
namespace {

constexpr size_t kGap = 1;

}  // namespace

size_t TextTable::Total(const std::vector<size_t>& widths) {
  size_t total = 0;
  for (const size_t width : widths) {
    if (width > 0) total += width + (total > 0 ? kGap : 0);
  }
  return total;
}

size_t TextTable::Next(const std::vector<size_t>& widths) const {
  size_t next = columns_.size();
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0 || columns_[i].given_up == 0) continue;
    if (next == columns_.size() || columns_[i].given_up > columns_[next].given_up) next = i;
  }
  return next;
}

void TextTable::Cut(int given_up, size_t width, std::vector<size_t>* widths) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const size_t total = Total(*widths);
    size_t& own = (*widths)[i];
    if (total <= width || given_up > column.cut_above || own <= column.least) continue;
    if (column.least > 0) own = std::max(column.least, own - std::min(own, total - width));
  }
}

std::vector<size_t> TextTable::Widths(size_t width) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t most = ColumnsOf(columns_[i].title);
    for (const auto& row : rows_) most = std::max(most, ColumnsOf(row[i]));
    widths.push_back(most);
  }
  const std::vector<size_t> whole = widths;
  while (width > 0 && Total(widths) > width) {
    const size_t next = Next(widths);
    Cut(next == columns_.size() ? 0 : columns_[next].given_up, width, &widths);
    if (Total(widths) <= width || next == columns_.size()) break;
    widths[next] = 0;
    // What was cut may have its room back.
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] > 0) widths[i] = whole[i];
    }
  }
  return widths;
}

std::string TextTable::Line(const std::vector<std::string>& cells,
                            const std::vector<size_t>& widths) const {
  std::string line;
  bool first = true;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    if (!first) line += std::string(kGap, ' ');
    first = false;
    const std::string cell =
        columns_[i].keep_end ? ClipFront(cells[i], widths[i]) : Clip(cells[i], widths[i]);
    line += columns_[i].left ? PadRight(cell, widths[i]) : PadLeft(cell, widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::vector<std::string> TextTable::Lines(size_t width) const {
  const std::vector<size_t> widths = Widths(width);
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::vector<std::string> lines = {Line(titles, widths)};
  for (const auto& row : rows_) lines.push_back(Line(row, widths));
  if (width > 0) {
    for (std::string& line : lines) line = Clip(line, width);
  }
  return lines;
}

}  // namespace nacre::ctl
