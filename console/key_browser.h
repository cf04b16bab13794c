#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/pool.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::console {

/// Which keys to show.
struct KeyQuery {
  std::string database;
  std::string family = "default";
  std::string prefix{};  ///< Only keys that begin so.
  std::string from{};    ///< Only keys that are not before this one.
  size_t limit = 50;     ///< At least 1; see KeyBrowser::kRowsMax.
};

/// A key and the beginning of its value.
struct KeyRow {
  std::string key;    ///< At most KeyBrowser::kKeyBytesMax bytes of it.
  std::string value;  ///< At most KeyBrowser::kValueBytesMax bytes of it.
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
};

struct KeyPage {
  std::vector<std::string> families;  ///< All that the database has.
  std::vector<KeyRow> rows;
  std::optional<std::string> next;  ///< Where the next page begins; nothing: this is the last one.
};

/// {"families": [...], "rows": [{"key": HEX, "key_bytes": N, "value": HEX, "value_bytes": N}, ...],
/// "next": HEX or null}. Keys and values are hexadecimal, as they may be any bytes.
std::string KeyPageJson(const KeyPage& page);
/// The bytes that hexadecimal digits stand for. `InvalidArgument` naming what is none.
Status BytesOfHex(const std::string& hex, std::string* bytes);

/// Looks into databases as their followers do: it writes nothing, and asks nothing of the owners. A
/// database stays open for a while after it was looked into, with its indexes in this process's
/// memory; a few are open at a time.
///
/// Thread safety: all methods may be called from many threads at once; one looks at a time.
class KeyBrowser {
 public:
  static constexpr size_t kRowsMax = 200;
  static constexpr size_t kKeyBytesMax = 1024;
  static constexpr size_t kValueBytesMax = 256;
  /// More are not open at a time; the one that was not looked into for longest is closed.
  static constexpr size_t kOpenMax = 4;
  static constexpr std::chrono::seconds kIdle{60};
  /// So many may look, or wait until they can; others are told to come again.
  static constexpr int kLookersMax = 4;

  /// `pool_uri`: as Options::pool_uri has it. `clock` outlives this.
  KeyBrowser(std::string pool_uri, Clock* clock);
  ~KeyBrowser();
  KeyBrowser(const KeyBrowser&) = delete;
  KeyBrowser& operator=(const KeyBrowser&) = delete;

  /// The keys as of now. `NotFound` if there is no such database or family, `InvalidArgument` if
  /// the query is out of range, or the database has an order of keys, or a plug-in, that this
  /// process has not got, `Busy` if too many look already; otherwise fails as `DB::OpenAsSecondary`
  /// and reads do.
  Status Look(const KeyQuery& query, KeyPage* page) EXCLUDES(mutex_);
  /// Closes what was not looked into for `kIdle`. To be called now and then; does
  /// nothing while a call of Look goes on.
  void CloseIdle() EXCLUDES(mutex_);
  size_t open_count() const EXCLUDES(mutex_);

 private:
  struct Open;

  Status LookLocked(const KeyQuery& query, KeyPage* page) REQUIRES(mutex_);
  Status OpenLocked(const std::string& name, Open** open) REQUIRES(mutex_);
  void CloseLeastUsedLocked() REQUIRES(mutex_);

  const std::string pool_uri_;
  Clock* const clock_;
  std::atomic<int> lookers_{0};  ///< A count only, which orders nothing.
  mutable Mutex mutex_;
  std::shared_ptr<Pool> pool_ GUARDED_BY(mutex_);  ///< While a database is open.
  std::map<std::string, std::unique_ptr<Open>> open_ GUARDED_BY(mutex_);
};

}  // namespace nacre::console
