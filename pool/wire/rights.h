#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"

namespace nacre::pool {

/// What the holder of a secret may do at a memory node. Written as one word:
///
///     read                   read everything, change nothing
///     write                  also write to all databases: create, own and destroy them
///     write:orders,billing-* to these only: names, or beginnings of names before a "*"
///     admin                  everything
///
/// Reading knows no names: a node lets its memory be read as a whole, by requests that it does not
/// see one by one.
class Rights {
 public:
  /// Those of `admin`.
  Rights() = default;
  /// `InvalidArgument`, without the word, if it is none of these. Empty stands for `admin`: so it
  /// is where a pool has one secret for all.
  static Status Parse(std::string_view word, Rights* rights);

  std::string ToString() const;
  bool may_administer() const { return kind_ == Kind::kAdmin; }
  /// Whether it may write to databases at all.
  bool may_write() const { return kind_ != Kind::kRead; }
  bool MayWriteTo(std::string_view database) const;
  /// The answer to the holder of a secret of that name that does not have `missing`, such as
  /// "'write' to database 'orders'".
  Status Denied(std::string_view secret, std::string_view missing) const;

 private:
  enum class Kind : char { kRead, kWrite, kAdmin };

  Kind kind_ = Kind::kAdmin;
  std::vector<std::string> databases_;  ///< For kWrite; empty: all.
};

/// A database's name, or the beginning of one before a "*", as operators give them.
/// `InvalidArgument` if it is empty or has a "*" elsewhere, or a character that cannot be written
/// in a secret file.
Status CheckDatabasePattern(std::string_view pattern);
bool MatchesDatabase(std::string_view pattern, std::string_view database);

}  // namespace nacre::pool
