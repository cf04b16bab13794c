#pragma once

#include <string>
#include <vector>

namespace nacre {

/// The key of that ID in the files of tests, as 64 hexadecimal digits.
std::string TestKey(const std::string& id);
/// Makes a key file, which only its owner may read, with the keys of these IDs in this order. A
/// failure fails the test.
void WriteKeyFile(const std::string& path, const std::vector<std::string>& ids);

/// The path of such a file that is no file of any folder, and lasts as long as the process.
std::string KeyFileInMemory(const std::vector<std::string>& ids);

}  // namespace nacre
