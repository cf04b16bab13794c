#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace nacre::ctl {

/// A table of text that gives columns up until it fits.
///
/// Thread safety: none.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool left = false;  ///< Where its text stands; else it is a number, and stands right.
    int given_up = 0;   ///< The column with the highest number goes first; 0: none goes.
    size_t least = 0;   ///< Its text may be cut to so many columns of the terminal; 0: it is not.
    int cut_above = 0;  ///< That is done before columns with this number or a lower one go.
    bool keep_end = false;  ///< What is cut is its beginning.
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// `cells` has one for each column.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// The titles, then a line for each row, within `width`; 0: any width.
  std::vector<std::string> Lines(size_t width) const;

 private:
  static size_t Total(const std::vector<size_t>& widths);
  /// The column that is to go next; as many as there are columns: none may.
  size_t Next(const std::vector<size_t>& widths) const;
  /// Cuts text as far as it takes and as it may be, before a column with this number goes.
  void Cut(int given_up, size_t width, std::vector<size_t>* widths) const;
  /// What each column takes; 0: it is given up.
  std::vector<size_t> Widths(size_t width) const;
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace nacre::ctl
