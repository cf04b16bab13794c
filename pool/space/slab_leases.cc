#include "pool/space/slab_leases.h"

#include <fmt/format.h>

#include "pool/connect/node_requests.h"
#include "pool/databases.h"

namespace nacre::pool {

Status LeaseSlabs(PoolClient* client, NodeId node, uint64_t database_id, const SlabsWanted& wanted,
                  std::vector<uint64_t>* offsets) {
  if (wanted.count <= 0) {
    return Status::InvalidArgument(fmt::format("lease of {} slabs", wanted.count));
  }
  control::Request request;
  control::Reply reply;
  control::LeaseSlabs* const lease = request.mutable_lease_slabs();
  lease->set_database_id(database_id);
  lease->set_count(static_cast<uint32_t>(wanted.count));
  lease->set_contiguous(wanted.contiguous);
  if (wanted.extend_count > 0) {
    lease->set_extend_at(wanted.extend_at);
    lease->set_extend_count(static_cast<uint32_t>(wanted.extend_count));
  }
  NACRE_RETURN_IF_ERROR(
      client->databases()->Heed(database_id, client->requests()->Call(node, &request, &reply)));
  NACRE_RETURN_IF_ERROR(client->fabric()->link(node)->SetWriteKeys(reply.slabs()));
  offsets->assign(reply.slabs().offsets().begin(), reply.slabs().offsets().end());
  return Status::OK();
}

Status ReturnSlabs(PoolClient* client, NodeId node, uint64_t database_id,
                   const std::vector<uint64_t>& offsets, NodeRequests::Late late) {
  control::Request request;
  control::Reply reply;
  request.mutable_return_slabs()->set_database_id(database_id);
  NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(client->requests()->UpLink(node, &link));
  // Beforehand: when the answer is here, another thread may have leased one of them anew.
  const control::Slabs keys = link->TakeWriteKeys(offsets);
  for (const uint64_t offset : offsets) request.mutable_return_slabs()->add_offsets(offset);
  for (const uint32_t key : keys.write_keys()) request.mutable_return_slabs()->add_write_keys(key);
  Status s = client->databases()->Heed(database_id,
                                       client->requests()->Call(node, &request, &reply, late));
  // They are still this client's, or it asks again, with the same keys.
  if (!s.ok()) link->GiveBackWriteKeys(keys);
  return s;
}

}  // namespace nacre::pool
