#pragma once

#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/uri.h"

namespace nacre::pool {

// A pool whose nodes are too many for a command line is named "file:PATH". The file has a line for
// each node and for parameters:
//
//     # The pool of hall 3.
//     tcp:10.0.0.1:7000
//     tcp:10.0.0.2:7000          # As in a URI, with its transport.
//     ?secret_file=/etc/nacre/secret&timeout_ms=3000
//
// What follows a '#' that begins a line or follows a space is a comment. Nodes of several
// transports make a mixed pool. Parameters may also follow the path ("file:PATH?timeout_ms=3000").

/// Makes a URI of scheme "file" the one of the pool that its file describes, and leaves any other
/// as it is. `IOError` naming a file that cannot be read, `InvalidArgument` naming file and line
/// of what is malformed or there twice.
Status ResolvePoolFile(Uri* pool);

/// The same for the bytes of the file `name`; `*pool` has the parameters of its URI.
Status ParsePoolFile(const Slice& text, const std::string& name, Uri* pool);

}  // namespace nacre::pool
