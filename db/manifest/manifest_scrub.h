#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "db/manifest/manifest_log.h"
#include "db/wal/log_scrub.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/read/pool_reader.h"

namespace nacre {

/// What is damaged of the replicas of a manifest.
struct ManifestDamage {
  pool::ManifestIdentity identity;  ///< Identity of the manifest.
  std::vector<std::string> places;  ///< For messages: node and place of each replica.
};

/// Compares the replicas of the manifest of an open database with their checksums: heads, slots,
/// those edits in their rings that the images may lack, and the zeros behind the last one. Commits,
/// image updates and renewals go on meanwhile: what they change under the reader's eyes is looked
/// at again. Replicas on lost nodes, or that cannot be read, are left out, and so are those of a
/// manifest that is renewed meanwhile.
///
/// `place`: where the manifest is now; called several times. Fails as `pass` does.
Status CheckManifestCopies(pool::PoolClient* client, pool::PoolReader* reader,
                           const std::function<ManifestPlace()>& place, const PassBytes& pass,
                           ManifestDamage* damage);

}  // namespace nacre
