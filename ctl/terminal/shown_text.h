#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text as a terminal shows it. Names come from other machines, so bytes that would steer the
// terminal are shown as '?'. A code point counts as one column.

namespace nacre::ctl {

/// `text` with '?' for control characters and for what is no UTF-8.
std::string Printable(std::string_view text);
/// The columns that `text`, which is printable, takes.
size_t ColumnsOf(std::string_view text);
/// The first `columns` of `text`, which is printable; '~' in the last one if something is missing.
std::string Clip(std::string_view text, size_t columns);
/// The last `columns`; '~' in the first one if something is missing.
std::string ClipFront(std::string_view text, size_t columns);
/// `text`, which is printable, with spaces behind it, or before it, up to `columns`.
std::string PadRight(std::string_view text, size_t columns);
std::string PadLeft(std::string_view text, size_t columns);

}  // namespace nacre::ctl
