#include "sharding/remote/member_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pool/connect/pool_secret.h"
#include "sharding/remote/member_codec.h"
#include "sharding/remote/member_request.pb.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

using pool::PeerConnection;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Operations that meet a member that is gone learn of it within this time.
constexpr milliseconds kConnectTimeout(500);
/// So long a member that could not be reached is not tried again: each thread would.
constexpr milliseconds kReconnectPause(20);
/// How often a call that sleeps looks whether there still is such a member.
constexpr milliseconds kSleepPeriod(100);

Status Gone(MemberLinks::Member member) {
  return Status::Unavailable(fmt::format("there is no member {}", member));
}

Status Encode(MemberLinks::Member member, sharding::MemberRequest* request, std::string* bytes) {
  request->set_member(member);
  if (request->SerializeToString(bytes)) return Status::OK();
  return Status::InvalidArgument("a request to a member is too large");
}

Status Decode(MemberLinks::Member member, const std::string& bytes, sharding::MemberReply* reply) {
  if (reply->ParseFromString(bytes)) return Status::OK();
  return Status::Corruption(fmt::format("member {}: what it answers is no reply", member));
}

}  // namespace

void MemberLinks::SetMembers(const std::map<Member, std::string>& addresses) {
  // Their connections are ended without the mutex.
  std::vector<Link> gone;
  MutexLock lock(&mutex_);
  for (auto it = links_.begin(); it != links_.end();) {
    if (addresses.contains(it->first)) {
      ++it;
      continue;
    }
    gone.push_back(std::move(it->second));
    it = links_.erase(it);
  }
  for (const auto& [member, address] : addresses) links_[member].address = address;
  connected_.SignalAll();
}

// ---- Requests -----------------------------------------------------------------------------------

Status MemberLinks::Call(Member member, sharding::MemberRequest* request, Deadline deadline,
                         sharding::MemberReply* reply, bool* sent) {
  *sent = false;
  reply->Clear();
  std::shared_ptr<PeerConnection> connection;
  NACRE_RETURN_IF_ERROR(Connect(member, deadline, &connection));
  std::string bytes;
  NACRE_RETURN_IF_ERROR(Encode(member, request, &bytes));
  std::string answer;
  NACRE_RETURN_IF_ERROR(connection->Call(bytes, deadline, &answer, sent));
  return Decode(member, answer, reply);
}

Status MemberLinks::CallAndSleep(Member member, sharding::MemberRequest* request,
                                 sharding::MemberReply* reply, bool* sent,
                                 const std::optional<Deadline>& deadline) {
  *sent = false;
  reply->Clear();
  std::shared_ptr<PeerConnection> connection;
  NACRE_RETURN_IF_ERROR(Connect(member, Deadline::After(clock_, kConnectTimeout), &connection));
  std::string bytes;
  NACRE_RETURN_IF_ERROR(Encode(member, request, &bytes));
  const auto still_wanted = [&]() -> Status {
    if (connection->ended()) {
      return Status::Unavailable(connection->address() + ": connection lost");
    }
    if (deadline.has_value() && deadline->Expired()) {
      return Status::TimedOut(connection->address() + ": it has not answered in time");
    }
    MutexLock lock(&mutex_);
    return links_.contains(member) ? Status::OK() : Gone(member);
  };
  nanoseconds period = kSleepPeriod;
  if (deadline.has_value()) period = std::min(period, deadline->Remaining());
  std::string answer;
  NACRE_RETURN_IF_ERROR(connection->CallAndSleep(bytes, period, still_wanted, &answer, sent));
  return Decode(member, answer, reply);
}

Status MemberLinks::Control(Member member, const sharding::ControlRequest& request,
                            Deadline deadline, sharding::ControlReply* reply) {
  sharding::MemberRequest asked;
  *asked.mutable_control() = request;
  sharding::MemberReply answer;
  bool sent = false;
  NACRE_RETURN_IF_ERROR(Call(member, &asked, deadline, &answer, &sent));
  *reply = std::move(*answer.mutable_control());
  return GetStatus(answer);
}

// ---- Connections --------------------------------------------------------------------------------

Status MemberLinks::Watch(Member member, Deadline deadline) {
  std::shared_ptr<PeerConnection> connection;
  return Connect(member, deadline, &connection);
}

bool MemberLinks::Stands(Member member) {
  MutexLock lock(&mutex_);
  const auto found = links_.find(member);
  return found != links_.end() && found->second.connection != nullptr &&
         !found->second.connection->ended();
}

bool MemberLinks::HasHungUp(Member member) {
  MutexLock lock(&mutex_);
  const auto found = links_.find(member);
  if (found == links_.end()) return false;
  const Link& link = found->second;
  return link.hung_up || (link.connection != nullptr && link.connection->hung_up());
}

Status MemberLinks::Connect(Member member, Deadline deadline,
                            std::shared_ptr<PeerConnection>* connection) {
  std::shared_ptr<PeerConnection> ended;  // Destroyed without the mutex.
  // Before it connects: if it is replaced meanwhile, the next call connects again.
  const std::shared_ptr<const rdma::Credential> credential = OwnCredential();
  rdma::Device* device = nullptr;
  std::string address;
  {
    MutexLock lock(&mutex_);
    for (;;) {
      const auto found = links_.find(member);
      if (found == links_.end()) return Gone(member);
      Link& link = found->second;
      if (link.connection != nullptr) {
        if (!link.connection->ended() && link.credential == credential) {
          *connection = link.connection;
          return Status::OK();
        }
        link.hung_up = link.connection->ended() && link.connection->hung_up();
        ended = std::move(link.connection);
      }
      const nanoseconds left = deadline.Remaining();
      if (left <= nanoseconds::zero()) {
        return Status::Unavailable(fmt::format("member {} is not connected in time", member));
      }
      if (!link.connecting) {
        if (!link.failure.ok() && clock_->NowNanos() < link.retry_nanos) return link.failure;
        NACRE_RETURN_IF_ERROR(DeviceFor(link.address, &device));
        link.connecting = true;
        address = link.address;
        break;
      }
      connected_.WaitFor(left);
    }
  }
  ended.reset();
  return Reach(member, device, address, credential, deadline, connection);
}

Status MemberLinks::Reach(Member member, rdma::Device* device, const std::string& address,
                          std::shared_ptr<const rdma::Credential> credential, Deadline deadline,
                          std::shared_ptr<PeerConnection>* connection) {
  const nanoseconds patience = std::min<nanoseconds>(deadline.Remaining(), kConnectTimeout);
  std::unique_ptr<PeerConnection> made;
  Status status = CatchAll([&] {
    return PeerConnection::Connect(device, clock_, address, Deadline::After(clock_, patience),
                                   &made);
  });
  if (!status.ok()) status = Status::Unavailable(status.message());
  std::shared_ptr<PeerConnection> shared = std::move(made);
  MutexLock lock(&mutex_);
  const auto found = links_.find(member);
  if (found == links_.end()) return Gone(member);
  Link& link = found->second;
  link.connecting = false;
  link.failure = status;
  if (status.ok()) {
    link.hung_up = false;
    link.credential = std::move(credential);
    std::swap(link.connection, shared);
    *connection = link.connection;
  } else {
    // One that refuses the secret lives.
    if (!pool::RemedyFor(status).empty()) link.hung_up = false;
    link.retry_nanos =
        clock_->NowNanos() + static_cast<uint64_t>(nanoseconds(kReconnectPause).count());
  }
  connected_.SignalAll();
  return status;
}

Status MemberLinks::DeviceFor(const std::string& address, rdma::Device** device) {
  std::unique_ptr<rdma::Device>& opened = devices_[address.substr(0, address.find(':'))];
  if (opened == nullptr)
    NACRE_RETURN_IF_ERROR(pool::OpenPeerDevice(address, security_, clock_, &opened));
  *device = opened.get();
  return Status::OK();
}

}  // namespace nacre
