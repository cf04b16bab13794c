#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/manifest/manifest_recovery.h"
#include "db/manifest/manifest_root.h"
#include "db/manifest/manifest_state.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre {

/// The manifest of a database that another process may own, kept up to date by one-sided reads of
/// new edits in its ring. When the ring has gone around, and when a manifest has been made
/// elsewhere, all of it is read anew.
///
/// A manifest that has been left behind does not say so: only the root does. The root is read when
/// the caller asks for it, and when the manifest cannot be read any more.
///
/// Thread safety: none.
class ManifestFollower {
 public:
  enum class Look : uint8_t {
    kEdits,  ///< One read of a few kilobytes.
    kRoot,   ///< The root as well, from more than half of its members: a request to each.
  };
  enum class News : uint8_t {
    kNone,
    kEdits,  ///< The state is a later one of the same manifest.
    /// The state is that of another manifest, of this owner or the next: any unacknowledged edit of
    /// the one before may be missing.
    kReplaced,
  };

  /// `client` outlives this.
  ManifestFollower(pool::PoolClient* client, std::string name)
      : client_(client), name_(std::move(name)) {}

  /// Reads root and manifest. `NotFound`: there is no such database. Failures otherwise as those of
  /// Databases::Find and RecoverManifest.
  Status Open();

  /// Brings state() up to all that was acknowledged before this call if `look` is kRoot; with
  /// kEdits, if the manifest is still the database's. `Aborted`: the database was destroyed, which
  /// is final. After any other failure the state is one that was; `*news` counts then, too.
  Status CatchUp(Look look, News* news);

  /// Nodes are numbered as the owner does.
  const ManifestState& state() const { return state_; }
  const ManifestRoot& root() const { return root_; }
  uint64_t database_id() const { return root_.identity.database_id; }
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t reloads() const { return reloads_; }

 private:
  /// Reads the manifest that `value` names.
  Status Load(const std::string& value);
  /// Each time that one was read it was another's by then: nothing is known to be damaged.
  Status ChangesTooFast() const;
  /// Loads the one that the root names, unless that is the one that is loaded; with `reload`, in
  /// any case. `*loaded`: it did.
  Status FollowRoot(bool reload, bool* loaded, News* news);
  /// Applies the edits that are in the ring. `Corruption`, `Unavailable`: they cannot be found
  /// there.
  Status ReadEdits(News* news);
  /// Reads so many bytes of the replica's ring, from ring_position_ on, to their place in ring_,
  /// and then the version of its image.
  Status ReadWindow(const ExtentAddr& copy, uint64_t bytes, uint64_t* image_version);
  /// The same as ReadEdits from one replica. `*done`: there are no more.
  Status ReadEditsOf(const ExtentAddr& copy, News* news, bool* done);

  pool::PoolClient* const client_;
  const std::string name_;
  std::string root_value_;
  std::string tried_value_;  ///< The last one that Load was given.
  ManifestRoot root_;
  ManifestState state_;
  std::vector<ExtentAddr> copies_;  ///< As this client numbers nodes.
  uint64_t ring_position_ = 0;      ///< The place where the next edit has to be.
  std::unique_ptr<char[]> ring_;    ///< What was read of it, in its place.
  Status destroyed_;
  uint64_t bytes_read_ = 0;
  uint64_t reloads_ = 0;
};

}  // namespace nacre
