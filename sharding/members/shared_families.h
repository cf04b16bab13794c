#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/status.h"
#include "sharding/shard_opener.h"
#include "sharding/sharded_family.h"
#include "sharding/sharded_view.h"
#include "util/clock.h"

namespace nacre {

class KeyspaceMember;

/// Makes and drops column families of a keyspace that several members own. The member that leads
/// changes the map; the owner of each shard opens that anew with the families of the map.
///
/// Thread safety: none.
class SharedFamilies {
 public:
  /// All outlive it. `families` are what this process knows of them.
  struct Context {
    KeyspaceMember* member;
    const ShardOpener* opener;
    std::shared_ptr<ShardedViews> views;
    ShardedFamilies* families;
    Clock* clock;
  };

  explicit SharedFamilies(Context context) : context_(std::move(context)) {}

  /// Returns when this process has a view with them. `NotSupported` if they have other operators
  /// than the default family: other members would not know these.
  Status Make(const std::vector<ColumnFamilyDescriptor>& families,
              std::vector<ColumnFamilyHandle*>* handles);
  /// Makes those that the keyspace was opened with and does not have.
  Status MakeMissing();
  Status Drop(const std::vector<const ShardedFamily*>& families);
  /// Takes over what others have made and dropped.
  void Follow() {
    context_.families->Follow(context_.views->latest()->map, *context_.opener, context_.views);
  }

 private:
  /// `there`: whether it is to be in the map.
  Status Await(const std::string& family, bool there) const;

  const Context context_;
};

}  // namespace nacre
