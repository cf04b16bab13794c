#include "server/scripts/script_library.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "server/resp/numbers.h"

namespace nacre::server {
namespace {

std::string_view TakeWord(std::string_view* text, char separator) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

/// Reads the first line, if it is one such as "#!lua flags=no-writes,allow-stale".
void ReadHeader(ScriptLibrary::Script* script) {
  std::string_view rest(script->source);
  if (!rest.starts_with("#!")) return;
  if (rest.find('\n') == std::string_view::npos) {
    script->error = "ERR Invalid script shebang";
    return;
  }
  std::string_view line = TakeWord(&rest, '\n').substr(2);
  const std::string_view engine = TakeWord(&line, ' ');
  if (engine != "lua") {
    script->error = "ERR Unexpected engine in script shebang: " + std::string(engine);
  }
  while (!line.empty() && script->error.empty()) {
    std::string_view option = TakeWord(&line, ' ');
    if (option.empty()) continue;
    if (!option.starts_with("flags=")) {
      script->error = "ERR Unknown lua shebang option: " + std::string(option);
      break;
    }
    option.remove_prefix(std::string_view("flags=").size());
    while (!option.empty()) {
      const std::string_view flag = TakeWord(&option, ',');
      if (flag == "no-writes") {
        script->reads_only = true;
      } else if (flag != "allow-oom" && flag != "allow-stale" && flag != "no-cluster" &&
                 flag != "allow-cross-slot-keys") {
        script->error = "ERR Unexpected flag in script shebang: " + std::string(flag);
      }
    }
  }
}

}  // namespace

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
  ReadHeader(script.get());
  if (!script->error.empty() || bytes_ + source.size() > kBytesMax) return script;
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
