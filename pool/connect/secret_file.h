#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"
#include "pool/wire/rights.h"
#include "rdma/secret_ring.h"

namespace nacre::pool {

/// No secret is longer.
inline constexpr size_t kMaxSecretBytes = 4096;
/// No file with secrets is longer.
inline constexpr size_t kMaxSecretFileBytes = size_t{1} << 20;
/// In a file with rights, no secret is shorter: it guards against passwords that can be guessed.
inline constexpr size_t kMinListedSecretBytes = 16;

/// A file with secrets is one of two kinds. Either all of it, but for a newline at its end, is the
/// pool's one secret, which lets its holders do everything. Or it begins with the line
/// `nacre-secrets 1`, and each line after it is one of
///
///     RIGHTS SECRET [NAME]       such as  write:orders,billing-*  9f3c...e1  orders-service
///     retired RIGHTS SECRET [NAME]
///     quota DATABASE BYTES       such as  quota orders 64GiB,  or  quota billing-* 1TiB
///     # a comment, or nothing
///
/// in words without spaces. A NAME is for messages and for nacre-ctl; without one it is the
/// secret's id. Secrets of the same rights may be there several times, so that clients can move
/// from one to the next while nodes take both. With a retired one no new connection is made, but
/// those that there are go on; one that is taken out is revoked, and they end.
struct SecretFile {
  struct Line {
    Rights rights;
    std::string secret;
    std::string name;  ///< As written; may be empty.
    bool retired = false;
  };
  /// How much of a node's memory the databases with names like that may lease together.
  struct Quota {
    std::string databases;
    uint64_t bytes = 0;

    bool operator==(const Quota&) const = default;
  };

  /// Whether it is all one secret, which is then the only line.
  bool bare = false;
  std::vector<Line> lines;
  std::vector<Quota> quotas;

  /// The line whose secret a process proves that has this file and connects: the first that may do
  /// everything, else the first, of those that are not retired. There is one.
  const Line& own() const;
  /// The same for a node's ring, the own one first.
  std::vector<rdma::SecretTerms> Terms() const;
};

/// The first line of a file with rights, without its end.
inline constexpr std::string_view kSecretFileHeader = "nacre-secrets 1";

/// Safe on any bytes. `InvalidArgument` names the line, and never tells a secret. A file with
/// rights has at least one secret that is not retired.
Status ParseSecretFile(std::string_view content, SecretFile* file);
/// What ParseSecretFile reads from one line without its end; neither, for a comment.
Status ParseSecretLine(std::string_view text, SecretFile* file);
/// The line for that, without its end.
std::string FormatSecretLine(const SecretFile::Line& line);
/// The name of a line for messages: its own, or the secret's id.
std::string NameOf(const SecretFile::Line& line);

}  // namespace nacre::pool
