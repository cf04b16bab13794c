#include "etcd/etcd_coordinator.h"

#include <algorithm>
#include <utility>

#include "etcd/etcd_call.h"
#include "etcd/etcd_endpoint.h"
#include "etcd/etcd_watch.h"
#include "etcd/grpc_api.h"
#include "nacre/utilities/etcd.h"

namespace nacre {
namespace {

namespace api = etcdserverpb;

/// The most that one endpoint gets while others have not been tried.
constexpr std::chrono::nanoseconds kShareMax = std::chrono::seconds(2);

using Channel = std::shared_ptr<grpc::Channel>;

/// What one endpoint gets of the time, `left` including it not having been tried.
Deadline ShareOf(Deadline deadline, size_t left) {
  if (left <= 1) return deadline;
  const std::chrono::nanoseconds share = deadline.Remaining() / static_cast<int64_t>(left);
  return Deadline::After(deadline.clock(), std::min(share, kShareMax));
}

void Prepare(grpc::ClientContext* context, Deadline deadline) {
  RequireLeader(context);
  context->set_deadline(GrpcTime(deadline.Remaining()));
}

/// All keys that begin with `prefix`: from "key" on, before "range_end".
template <typename Request>
void SetPrefix(const std::string& prefix, Request* request) {
  static constexpr char kZero = '\0';  // As a key the first one, as an end none.
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) {
    end.push_back(kZero);
  } else {
    end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  }
  request->set_key(prefix.empty() ? std::string(1, kZero) : prefix);
  request->set_range_end(std::move(end));
}

api::TxnRequest TransactionOf(const std::vector<Coordinator::Change>& changes) {
  api::TxnRequest request;
  for (const Coordinator::Change& change : changes) {
    api::Compare* const compare = request.add_compare();
    compare->set_result(api::Compare::EQUAL);
    compare->set_target(api::Compare::MOD);
    compare->set_key(change.key);
    compare->set_mod_revision(change.expected);  // 0 is that of a key that is not there.
    if (change.only_check) continue;
    api::RequestOp* const operation = request.add_success();
    if (change.value.has_value()) {
      api::PutRequest* const put = operation->mutable_request_put();
      put->set_key(change.key);
      put->set_value(*change.value);
      put->set_lease(change.lease);
    } else {
      operation->mutable_request_delete_range()->set_key(change.key);
    }
  }
  return request;
}

}  // namespace

Status EtcdCoordinator::Open(const std::string& address,
                             std::shared_ptr<Coordinator>* coordinator) {
  std::vector<std::string> endpoints;
  NACRE_RETURN_IF_ERROR(ParseEtcdAddress(address, &endpoints));
  coordinator->reset(new EtcdCoordinator(address, endpoints));
  return Status::OK();
}

EtcdCoordinator::EtcdCoordinator(const std::string& address,
                                 const std::vector<std::string>& endpoints)
    : name_("etcd " + address) {
  for (const std::string& endpoint : endpoints) {
    endpoints_.push_back(std::make_unique<EtcdEndpoint>(endpoint));
  }
}

EtcdCoordinator::~EtcdCoordinator() = default;

Status EtcdCoordinator::Try(Deadline deadline, Repeat repeat, const Attempt& attempt) {
  const size_t count = endpoints_.size();
  const size_t first = preferred_.load(std::memory_order_relaxed);
  std::string failures;
  Status result;
  for (size_t tried = 0; tried < count; ++tried) {
    const size_t index = (first + tried) % count;
    EtcdEndpoint& endpoint = *endpoints_[index];
    const Deadline share = ShareOf(deadline, count - tried);
    Channel channel;
    result = endpoint.Connect(share, &channel);
    const bool connected = result.ok();
    if (connected) result = attempt(channel, share);
    if (!result.IsUnavailable() && !result.IsTimedOut()) {
      Prefer(index);
      return result.WithContext("etcd " + endpoint.address());
    }
    Prefer((index + 1) % count);
    failures += (failures.empty() ? "etcd " : "; etcd ") + endpoint.address() + ": ";
    failures += result.message();
    if (connected && repeat == Repeat::kNever) break;
    if (deadline.Expired()) break;
  }
  return Status::FromCode(static_cast<int>(result.code()), failures);
}

Status EtcdCoordinator::Read(const std::string& prefix, Deadline deadline,
                             std::vector<Entry>* entries, int64_t* revision) {
  entries->clear();
  api::RangeRequest request;
  SetPrefix(prefix, &request);
  api::RangeResponse response;
  NACRE_RETURN_IF_ERROR(
      Try(deadline, Repeat::kAllowed, [&](const Channel& channel, Deadline share) {
        grpc::ClientContext context;
        Prepare(&context, share);
        return FromGrpc(api::KV::NewStub(channel)->Range(&context, request, &response));
      }));
  entries->reserve(static_cast<size_t>(response.kvs_size()));
  for (api::KeyValue& pair : *response.mutable_kvs()) {
    entries->push_back({.key = std::move(*pair.mutable_key()),
                        .value = std::move(*pair.mutable_value()),
                        .changed = pair.mod_revision(),
                        .lease = pair.lease()});
  }
  *revision = response.header().revision();
  return Status::OK();
}

Status EtcdCoordinator::Commit(const std::vector<Change>& changes, Deadline deadline, bool* done) {
  *done = false;
  const api::TxnRequest request = TransactionOf(changes);
  api::TxnResponse response;
  // All of the time, since no other endpoint is asked once it is sent.
  NACRE_RETURN_IF_ERROR(Try(deadline, Repeat::kNever, [&](const Channel& channel, Deadline) {
    grpc::ClientContext context;
    Prepare(&context, deadline);
    return FromGrpc(api::KV::NewStub(channel)->Txn(&context, request, &response));
  }));
  *done = response.succeeded();
  return Status::OK();
}

Status EtcdCoordinator::AwaitChange(const std::string& prefix, int64_t revision,
                                    Deadline deadline) {
  api::WatchCreateRequest request;
  SetPrefix(prefix, &request);
  request.set_start_revision(revision + 1);
  bool changed = false;
  // All of the time: a watch notices by itself that its endpoint has stopped.
  NACRE_RETURN_IF_ERROR(Try(deadline, Repeat::kAllowed, [&](const Channel& channel, Deadline) {
    return EtcdWatch(channel).Await(request, deadline, &changed);
  }));
  return changed ? Status::OK() : Status::TimedOut(name_ + ": nothing has changed");
}

Status EtcdCoordinator::GrantLease(std::chrono::milliseconds ttl, Deadline deadline, Lease* lease) {
  api::LeaseGrantRequest request;
  request.set_ttl(std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(ttl).count()));
  api::LeaseGrantResponse response;
  // A lease that was granted without an answer ends by itself.
  NACRE_RETURN_IF_ERROR(
      Try(deadline, Repeat::kAllowed, [&](const Channel& channel, Deadline share) {
        grpc::ClientContext context;
        Prepare(&context, share);
        return FromGrpc(api::Lease::NewStub(channel)->LeaseGrant(&context, request, &response));
      }));
  *lease = response.id();
  return Status::OK();
}

Status EtcdCoordinator::KeepLease(Lease lease, Deadline deadline) {
  api::LeaseKeepAliveRequest request;
  request.set_id(lease);
  return Try(deadline, Repeat::kAllowed, [&](const Channel& channel, Deadline share) {
    grpc::ClientContext context;
    Prepare(&context, share);
    const auto stream = api::Lease::NewStub(channel)->LeaseKeepAlive(&context);
    api::LeaseKeepAliveResponse response;
    stream->WriteLast(request, grpc::WriteOptions());
    const bool answered = stream->Read(&response);
    const Status ended = FromGrpc(stream->Finish());
    if (!answered) return ended.ok() ? Status::Unavailable("ended the call") : ended;
    return response.ttl() > 0 ? Status::OK() : Status::NotFound("the lease has ended");
  });
}

Status EtcdCoordinator::EndLease(Lease lease, Deadline deadline) {
  api::LeaseRevokeRequest request;
  request.set_id(lease);
  const Status ended = Try(deadline, Repeat::kAllowed, [&](const Channel& channel, Deadline share) {
    grpc::ClientContext context;
    Prepare(&context, share);
    api::LeaseRevokeResponse response;
    return FromGrpc(api::Lease::NewStub(channel)->LeaseRevoke(&context, request, &response));
  });
  return ended.IsNotFound() ? Status::OK() : ended;
}

void UseEtcd() { RegisterCoordinator("etcd", EtcdCoordinator::Open); }

}  // namespace nacre
