// Options as text: any text is refused, or gives options of which the text, if there is one, gives
// the same again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "nacre/convenience.h"

namespace {

bool TextOf(const nacre::Options& options, std::string* text) {
  std::string of_family;
  if (!nacre::GetStringFromDBOptions({}, options, text).ok()) return false;
  // None of its options is a string.
  if (!nacre::GetStringFromColumnFamilyOptions({}, options, &of_family).ok()) std::abort();
  *text += of_family;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const bool ignore : {false, true}) {
    nacre::ConfigOptions config;
    config.ignore_unknown_options = ignore;
    nacre::Options options;
    if (!nacre::GetOptionsFromString(config, nacre::Options(), text, &options).ok()) continue;
    std::string once;
    if (!TextOf(options, &once)) continue;
    nacre::Options again;
    if (!nacre::GetOptionsFromString(nacre::Options(), once, &again).ok()) std::abort();
    std::string twice;
    if (!TextOf(again, &twice) || twice != once) std::abort();
    if (again.pool_uri != options.pool_uri || again.db_log_dir != options.db_log_dir) std::abort();
  }
  return 0;
}
