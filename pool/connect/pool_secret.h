#pragma once

#include <memory>
#include <string>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/connect/secret_file.h"
#include "util/uri.h"

namespace nacre::pool {

/// The secret that the members of a pool share; `uri` names the pool or a node of it. It is the
/// content of the file that the URI's parameter `secret_file` names, which is taken out of it; else
/// of the one that the environment's NACRE_SECRET_FILE names; else NACRE_SECRET itself; else none.
/// It is never taken from a command line, which every user of the machine can read. A newline at
/// the end is not part of it. Of a file with rights (secret_file.h) it is the own one.
///
/// `IOError` for a file that cannot be read, `InvalidArgument` for a secret that is empty or longer
/// than kMaxSecretBytes. A file that every user may read is warned of in the log (may be null), not
/// refused: where a file system or an orchestrator sets the mode, the directory is what guards it.
Status TakeSecret(Uri* uri, const std::shared_ptr<Logger>& logger, std::string* secret);

/// Where a node has its secrets from, and what they were when it looked last.
struct SecretSource {
  std::string path{};  ///< Empty: from no file.
  SecretFile file{};   ///< Without lines: there is no secret.
};
/// As TakeSecret, with all that a file says.
Status TakeSecrets(Uri* uri, const std::shared_ptr<Logger>& logger, SecretSource* source);
/// Reads such a file. Failures as TakeSecret.
Status ReadSecretFile(const std::string& path, const std::shared_ptr<Logger>& logger,
                      SecretFile* file);

/// What to do about a peer that does not know the secret; empty for any other failure.
std::string RemedyFor(const Status& status);

}  // namespace nacre::pool
