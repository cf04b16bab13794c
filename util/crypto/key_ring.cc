#include "util/crypto/key_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "util/crypto/secret_text.h"

namespace nacre {
namespace {

constexpr size_t kMaxKeyFileBytes = 64 << 10;
constexpr std::string_view kBlanks = " \t\r";

/// Takes a word from the front of `line`; empty at its end.
std::string_view TakeWord(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlanks));
  line->remove_prefix(word.size());
  return word;
}

/// -1: it is none.
int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool ParseKey(std::string_view text, SecretKey* key) {
  if (text.size() != 2 * SecretKey::kBytes) return false;
  for (size_t i = 0; i < SecretKey::kBytes; ++i) {
    const int high = DigitOf(text[2 * i]);
    const int low = DigitOf(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    key->data()[i] = static_cast<char>(high << 4 | low);
  }
  return true;
}

Status ParseKeyLine(std::string_view line, std::vector<KeyRing::Key>* keys) {
  const std::string_view id = TakeWord(&line);
  if (id.empty() || id.starts_with('#')) return Status::OK();
  const std::string_view digits = TakeWord(&line);
  KeyRing::Key key;
  // What is wrong with a line may be that the key stands in the place of the ID: neither is told.
  if (!IsKeyId(id) || !ParseKey(digits, &key.key) || !TakeWord(&line).empty()) {
    return Status::InvalidArgument(
        "a key is 'ID HEX': an ID of 1 to 32 letters, digits, '.', '_' and '-', and 64 "
        "hexadecimal digits, such as 'openssl rand -hex 32' draws");
  }
  key.id = id;
  for (const KeyRing::Key& other : *keys) {
    if (other.id == id) {
      return Status::InvalidArgument(fmt::format("the ID '{}' is there twice", id));
    }
  }
  keys->push_back(std::move(key));
  return Status::OK();
}

}  // namespace

bool IsKeyId(std::string_view id) {
  return !id.empty() && id.size() <= KeyRing::kMaxIdBytes &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '.' || c == '_' || c == '-';
         });
}

Status KeyRing::Parse(std::string_view content, KeyRing* ring) {
  ring->keys_.clear();
  if (content.size() > kMaxKeyFileBytes) {
    return Status::InvalidArgument(
        fmt::format("the file is longer than {} bytes", kMaxKeyFileBytes));
  }
  for (int number = 1; !content.empty(); ++number) {
    const std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(line.size() + 1, content.size()));
    NACRE_RETURN_IF_ERROR(
        ParseKeyLine(line, &ring->keys_).WithContext(fmt::format("line {}", number)));
  }
  if (ring->keys_.empty()) return Status::InvalidArgument("there is no key in it");
  return Status::OK();
}

Status KeyRing::Read(const std::string& path, std::shared_ptr<const KeyRing>* ring) {
  std::string content;
  SecretReaders readers;
  NACRE_RETURN_IF_ERROR(
      ReadSecretText(path, kMaxKeyFileBytes, &content, &readers).WithContext("key file"));
  auto read = std::make_shared<KeyRing>();
  Status status = readers.group || readers.others
                      ? Status::InvalidArgument("others than its owner may read it; chmod 600 it")
                      : Parse(content, read.get());
  WipeSecret(&content);
  NACRE_RETURN_IF_ERROR(status.WithContext(fmt::format("key file '{}'", path)));
  read->path_ = path;
  *ring = std::move(read);
  return Status::OK();
}

const SecretKey* KeyRing::Find(std::string_view id) const {
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [id](const Key& key) { return key.id == id; });
  return found == keys_.end() ? nullptr : &found->key;
}

}  // namespace nacre
