#pragma once

#include <memory>
#include <string>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "util/uri.h"

namespace nacre::pool {

/// No secret is longer.
inline constexpr size_t kMaxSecretBytes = 4096;

/// The secret that the members of a pool share; `uri` names the pool or a node of it. It is the
/// content of the file that the URI's parameter `secret_file` names, which is taken out of it; else
/// of the one that the environment's NACRE_SECRET_FILE names; else NACRE_SECRET itself; else none.
/// It is never taken from a command line, which every user of the machine can read. A newline at
/// the end is not part of it.
///
/// `IOError` for a file that cannot be read, `InvalidArgument` for a secret that is empty or longer
/// than kMaxSecretBytes. A file that every user may read is warned of in the log (may be null), not
/// refused: where a file system or an orchestrator sets the mode, the directory is what guards it.
Status TakeSecret(Uri* uri, const std::shared_ptr<Logger>& logger, std::string* secret);

/// What to do about a peer that does not know the secret; empty for any other failure.
std::string RemedyFor(const Status& status);

}  // namespace nacre::pool
