#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "nacre/logger.h"
#include "nacre/status.h"

namespace nacre {

struct PoolOptions {
  /// The secret, for applications that keep secrets elsewhere than in files. If it is empty, Pool's
  /// comment says where the secret comes from. It excludes the URI's `secret_file`.
  std::string secret{};
  /// Queue pairs to one node that reads share, at least 2: a quarter of them (8 at most) for
  /// iterators, the rest for lookups, which then wait for one another's end. 0: each thread that
  /// looks up has its own, and iterators have 8. Flushes and requests come on top: a few for each
  /// background job. Bound it where an adapter's cache holds few connections and threads are many.
  int max_queue_pairs_per_node = 0;
  /// A node that keeps a read or a write to the log waiting for longer than four times what such
  /// operations take on the nodes of the pool at the 99th percentile, but not for less than `min`
  /// nor for more than `max`, counts as slow: the log goes on elsewhere, reads turn to other
  /// replicas or decode what others have, new tables and jobs avoid the node until it is as fast as
  /// others again. Less than half of the nodes count as slow at a time. Where everything takes
  /// long, waits are four times the median at least. `max` 0: nodes are waited for, as long as an
  /// operation may take.
  std::chrono::milliseconds slow_node_patience_min{4};
  std::chrono::milliseconds slow_node_patience_max{20};
  /// At most so many of 100 reads are asked of other nodes since one of them is late; a few are
  /// always free. 0: none are.
  uint32_t hedged_reads_percent = 5;
  /// Hears of peers that were refused and of a secret file that every user may read. May be null.
  std::shared_ptr<Logger> info_log{};
};

/// A set of memory nodes, named by a URI:
///
///     embedded:?nodes=4&size=1GiB           nodes inside this process, gone with this object
///     shm:/run/n0.sock,/run/n1.sock         `nacre-memnode`s of this host; or cxl:
///     tcp:10.0.0.1:7000,[fd00::2]:7000      of any host
///     verbs:10.1.0.1:7000,10.1.0.2:7000     of any host, by RDMA: IP addresses of RDMA devices
///     mixed:shm:/run/n0.sock,tcp:mn2:7000   each node over a transport of its own (but embedded)
///     file:/etc/nacre/pool                  what a file says: a line for each node and parameters
///
/// Nodes reach one another by the same addresses, which mean the same everywhere. At most 1,024.
///
/// Parameters follow after `?` as `name=value`, with `&` between them:
///
///     secret_file       file with the pool's secret; see below
///     nodes, size, slab_size  embedded: how many (4), bytes of each (1GiB) and of a slab (64MiB)
///     map               shm, cxl, embedded: 0 reads nodes' memory by requests, as over a network;
///                       otherwise scans load it where it lies (1)
///     rtt_us, gbps      any: put the NIC model before every node: a round trip in microseconds, a
///                       bandwidth in Gbit/s (0: none)
///     port_gbps, ports  any: the NIC model's bandwidth of the port of each node in Gbit/s (0:
///                       none), and a file by which all processes of this host that name it share
///                       these ports (none: each process has them to itself)
///     io_threads        tcp: threads of this process that serve sockets, 1 to 256 (1)
///     spin_us           tcp: microseconds for which a thread looks for a reply before it sleeps,
///                       as long as other threads leave it the processor (50)
///     io_spin_us        tcp: the same for the threads that serve sockets (0)
///     timeout_ms        tcp, verbs: a peer that is silent for so long while something is awaited
///                       of it is given up (5000); adapters may take up to four times as long
///     tls               tcp: 1 encrypts control messages (not the data), `all` everything, with
///                       TLS 1.3, keyed by the pool's secret, which there must be; the nodes have
///                       to do the same (0)
///     device, port      verbs: name and port of the RDMA device (the first with an active port)
///     gid               verbs: index in the port's GID table (as the kernel routes to the peer)
///     piece_mib         verbs: register memory in pieces of at most so much, a power of two (0: as
///                       much at once as the device takes)
///     relaxed_ordering  verbs: 1 lets the bus reorder what peers write. Only for experiments: a
///                       thread that polls memory, as all waits for answers do, may see a write's
///                       end before its beginning (0)
///
/// In a mixed pool a parameter of one transport is written with its name before it:
/// `verbs.device=mlx5_0&tcp.io_threads=2`; without, it goes to all of them, which have to know it.
/// The parameters are this process's; a node has those of its own `--listen`.
///
/// The members of a pool prove to one another that they know its secret; a peer that does not is
/// served nothing. It is what `PoolOptions::secret` says, else what is in the file that
/// `secret_file` or the environment's NACRE_SECRET_FILE names, else NACRE_SECRET in the
/// environment, else none.
///
/// Databases opened through one `Pool` share nothing but the nodes. An embedded pool keeps the
/// data of closed databases as long as the object lives, so they can be opened again.
/// Thread safety: all methods may be called from many threads at once.
class Pool {
 public:
  /// `InvalidArgument` for a malformed URI or an unknown scheme, `Unavailable` for a node that
  /// cannot be reached, does not know the secret or speaks another protocol version, `NoSpace` for
  /// embedded nodes larger than the memory of this machine, `IOError` for a secret file that cannot
  /// be read.
  static Status Open(const std::string& uri, const PoolOptions& options,
                     std::shared_ptr<Pool>* pool);
  static Status Open(const std::string& uri, std::shared_ptr<Pool>* pool) {
    return Open(uri, PoolOptions(), pool);
  }

  virtual ~Pool() = default;
  virtual const std::string& uri() const = 0;
  virtual int node_count() const = 0;
};

}  // namespace nacre
