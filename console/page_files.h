#pragma once

#include <span>
#include <string_view>

namespace nacre::console {

/// A file of the page, as it was when this was built.
struct PageFile {
  std::string_view name;  ///< "index.html"
  std::span<const unsigned char> bytes;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// All of them.
std::span<const PageFile> PageFiles();

}  // namespace nacre::console
