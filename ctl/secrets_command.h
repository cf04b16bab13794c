#pragma once

#include <string>
#include <vector>

#include "nacre/status.h"

// nacre-ctl's commands for a file with secrets (pool/connect/secret_file.h). They ask no node:
// distributing the file, and telling the nodes of it, is the operator's.

namespace nacre::ctl {

/// Whether `words` are `secrets list|add|prefer|retire|revoke FILE...` with their arguments.
bool FitsSecretsCommand(const std::vector<std::string>& words);

/// Carries one out. A changed file takes the place of the old one in one step, with its owner, and
/// may be read by that one alone. A secret is printed by `add` only, for the one that was added:
/// to standard output, and nothing besides.
///
/// `InvalidArgument` for what is no such file, or would not be one afterwards; `Busy` while another
/// edit is under way; `NotFound` for a name that it has not got; `IOError` with the system's
/// reason.
Status RunSecretsCommand(const std::vector<std::string>& words, bool json);

}  // namespace nacre::ctl
