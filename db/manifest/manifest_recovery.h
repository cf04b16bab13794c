#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/manifest/manifest_edit.h"
#include "db/manifest/manifest_root.h"
#include "db/manifest/manifest_state.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre {

/// What RecoverManifest found.
struct ManifestRecovered {
  ManifestRoot root;
  /// The state after the last edit. Nodes have the numbers of the owner that wrote it;
  /// `state.nodes` says which instances these are (see ManifestState::Renumber).
  ManifestState state;
  /// The replicas that lie on nodes of this client, as it numbers them: what to free once a new
  /// manifest has been made.
  std::vector<ExtentAddr> copies;
  size_t copies_read = 0;  ///< The replicas that the root names whose node answered.
  uint64_t image_version = 0;
  uint64_t ring_position = 0;       ///< The place where the edit after the last one has to be.
  std::vector<ManifestEdit> edits;  ///< Replayed on top of the image, in order.
  std::vector<std::string> notes;   ///< What was damaged or missing, and what was done about it.
};

/// Reads the manifest that `root_value` names: the newest image that can be put together out of the
/// replicas that can be read, then the edits of later versions in their order. What is damaged in
/// one replica is taken from another.
///
/// An edit that was acknowledged is on every replica, so the replay ends where some replica has not
/// got the next one while no replica has it. The last edit may be one that was not acknowledged; it
/// is there or not there as a whole.
///
/// `Corruption` naming the place if something that counts is damaged in all replicas: never a state
/// that has not been, never an older one. `Unavailable` naming the nodes if no replica can be read;
/// `NotSupported` for newer formats. Writes nothing. Of a manifest whose owner is at work, this
/// gives a state that there was a moment ago, unless it is renewed meanwhile: then this may fail.
/// `TimedOut`: the images change faster than they can be read.
Status RecoverManifest(pool::PoolClient* client, const std::string& root_value,
                       uint64_t database_id, ManifestRecovered* recovered);

}  // namespace nacre
