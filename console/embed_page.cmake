# usage: cmake -D OUTPUT=SOURCE -D FILES="FILE;FILE..." -P embed_page.cmake
#
# Writes the source that defines console/page_files.h's PageFiles with the contents of FILES.

set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS FILES)
  cmake_path(GET file FILENAME name)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", {kFile${number}, sizeof kFile${number}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}.new" "#include \"console/page_files.h\"

namespace nacre::console {
namespace {

${arrays}
constexpr PageFile kFiles[] = {
${rows}};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace nacre::console
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
