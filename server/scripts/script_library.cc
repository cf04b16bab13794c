#include "server/scripts/script_library.h"

#include <openssl/sha.h>

#include <array>

#include "server/resp/numbers.h"

namespace nacre::server {

ScriptLibrary::Run::Run(ScriptLibrary* library) : library_(library) {
  MutexLock lock(&library_->mutex_);
  library_->running_.insert(this);
}

ScriptLibrary::Run::~Run() {
  MutexLock lock(&library_->mutex_);
  library_->running_.erase(this);
}

std::string ScriptLibrary::Sha1(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string text;
  for (const unsigned char byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::shared_ptr<ScriptLibrary::Script> ScriptLibrary::Add(std::string_view source) {
  std::string sha = Sha1(source);
  MutexLock lock(&mutex_);
  if (const auto found = scripts_.find(sha); found != scripts_.end()) return found->second;
  const auto script = std::make_shared<Script>();
  script->source = source;
  script->sha = sha;
  if (bytes_ + source.size() > kBytesMax) return script;
  bytes_ += source.size();
  scripts_.emplace(std::move(sha), script);
  return script;
}

std::shared_ptr<ScriptLibrary::Script> ScriptLibrary::Find(std::string_view sha) const {
  MutexLock lock(&mutex_);
  const auto found = scripts_.find(LowerCase(sha));
  return found == scripts_.end() ? nullptr : found->second;
}

void ScriptLibrary::Clear() {
  MutexLock lock(&mutex_);
  scripts_.clear();
  bytes_ = 0;
}

ScriptLibrary::Killed ScriptLibrary::Kill() {
  MutexLock lock(&mutex_);
  Killed outcome = Killed::kNoneRuns;
  for (Run* const run : running_) {
    const bool wrote = run->wrote_.load(std::memory_order_relaxed);
    if (!wrote) run->killed_.store(true, std::memory_order_relaxed);
    if (!wrote || outcome == Killed::kNoneRuns) {
      outcome = wrote ? Killed::kHasWritten : Killed::kKilled;
    }
  }
  return outcome;
}

}  // namespace nacre::server
