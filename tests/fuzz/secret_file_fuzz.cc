// A file with secrets, as an operator or an orchestrator wrote it: any bytes are refused, or give
// secrets of which each line, written again, says the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "pool/connect/secret_file.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre::pool;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& content : {bytes, std::string(kSecretFileHeader) + "\n" + bytes}) {
    SecretFile file;
    if (!ParseSecretFile(content, &file).ok()) continue;
    Require(!file.lines.empty() && file.Terms().size() == file.lines.size());
    Require(file.Terms()[0].secret == file.own().secret && !file.own().retired);
    if (file.bare) continue;
    for (const SecretFile::Line& line : file.lines) {
      Require(line.secret.size() >= kMinListedSecretBytes && line.secret.size() <= kMaxSecretBytes);
      SecretFile again;
      Require(ParseSecretLine(FormatSecretLine(line), &again).ok() && again.lines.size() == 1);
      Require(again.lines[0].secret == line.secret && again.lines[0].name == line.name);
      Require(again.lines[0].retired == line.retired);
      Require(again.lines[0].rights.ToString() == line.rights.ToString());
    }
  }
  return 0;
}
