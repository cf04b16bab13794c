#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "util/mutex.h"

namespace nacre::server {

/// The scripts that a server has been given, by the SHA-1 of their sources. As with Redis they are
/// gone when the server ends, and clients give them again.
///
/// Thread safety: all of it may be used from many threads at once.
class ScriptLibrary {
 public:
  struct Script {
    std::string source;
    std::string sha;
    bool reads_only = false;  ///< As its first line says.
    std::string error;        ///< What is wrong with that line.
    /// See NoteOtherKeys.
    std::atomic<bool> names_other_keys{false};
  };
  /// A script that runs. It is known to SCRIPT KILL while this lives.
  class Run {
   public:
    explicit Run(ScriptLibrary* library);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    bool killed() const { return killed_.load(std::memory_order_relaxed); }
    /// The server ends: the script must, too, and nothing that it has changed may take effect.
    bool cut_off() const { return library_->cuts_off_.load(std::memory_order_relaxed); }
    /// It has changed something, and is not killed any more.
    void SetWrote() { wrote_.store(true, std::memory_order_relaxed); }

   private:
    friend class ScriptLibrary;
    ScriptLibrary* const library_;
    std::atomic<bool> killed_{false};
    std::atomic<bool> wrote_{false};
  };
  enum class Killed : uint8_t { kNoneRuns, kHasWritten, kKilled };

  /// 40 hexadecimal digits in lower case.
  static std::string Sha1(std::string_view bytes);

  /// The script of this source, which is kept if there is room (kBytesMax) and it has no error.
  std::shared_ptr<Script> Add(std::string_view source) EXCLUDES(mutex_);
  /// Null: there is none. `sha` in upper or lower case.
  std::shared_ptr<Script> Find(std::string_view sha) const EXCLUDES(mutex_);
  size_t size() const EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return scripts_.size();
  }
  void Clear() EXCLUDES(mutex_);
  /// The script has named keys that it had not declared, so it needs all locks from now on.
  void NoteOtherKeys(Script* script) {
    script->names_other_keys.store(true, std::memory_order_relaxed);
    any_names_other_keys_.store(true, std::memory_order_relaxed);
  }
  /// Whether that was said of any script.
  bool any_names_other_keys() const {
    return any_names_other_keys_.load(std::memory_order_relaxed);
  }
  /// All scripts end, those that begin later as well.
  void CutOff() { cuts_off_.store(true, std::memory_order_relaxed); }
  /// Has all scripts that run, and have changed nothing, end with an error.
  Killed Kill() EXCLUDES(mutex_);

 private:
  static constexpr size_t kBytesMax = size_t{64} << 20;

  std::atomic<bool> any_names_other_keys_{false};
  std::atomic<bool> cuts_off_{false};
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Script>, std::less<>> scripts_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;  ///< What the sources take.
  std::set<Run*> running_ GUARDED_BY(mutex_);
};

}  // namespace nacre::server
