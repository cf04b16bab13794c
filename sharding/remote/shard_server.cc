#include "sharding/remote/shard_server.h"

#include <utility>

#include "pool/wire/control.pb.h"
#include "pool/wire/protocol.h"
#include "sharding/remote/member_codec.h"
#include "sharding/remote/member_rights.h"

namespace nacre {

ShardServer::ShardServer(Context context)
    : context_(std::move(context)),
      clients_(context_.served->owner()),
      service_(context_.served, &clients_, context_.threads, context_.clock),
      executor_(context_.threads->NewExecutor(TaskThreads::kUnbounded, "nacre-serve")) {}

ShardServer::~ShardServer() { Stop(); }

Status ShardServer::Start(const std::string& listen) {
  NACRE_RETURN_IF_ERROR(pool::OpenPeerDevice(listen, context_.security, context_.clock, &device_)
                            .WithContext("member_address"));
  pool::RequestHandler* const handler = this;
  server_ = std::make_unique<pool::RequestServer>(
      pool::RequestServerOptions{.listen = listen, .kind = "member", .log = context_.log},
      device_.get(), context_.clock, handler);
  NACRE_RETURN_IF_ERROR(server_->Listen().WithContext("member_address " + listen));
  server_->Start();
  started_ = true;
  return Status::OK();
}

void ShardServer::Stop() {
  if (!std::exchange(started_, false)) return;
  server_->BeginStop(/*silently=*/false);
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    while (under_way_ > 0) ended_.Wait();
  }
  server_->Stop(/*silently=*/false);
}

std::string ShardServer::Refusal(const pool::Hello& hello) {
  return pool::RefusalReason(hello, 0, 0, 0);
}

void ShardServer::AnswerWith(pool::ServerConnection* connection, std::string reply) {
  control::Reply frame;
  frame.set_member_reply(std::move(reply));
  server_->Answer(connection, Status::OK(), std::move(frame));
}

void ShardServer::Execute(pool::ServerConnection* connection) {
  sharding::MemberRequest request;
  if (!request.ParseFromString(connection->request.member_request())) {
    server_->Answer(connection, Status::InvalidArgument("a malformed request of a member"), {});
    return;
  }
  const uint64_t client = connection->client_id;
  sharding::MemberReply reply;
  if (const Status s = CheckMemberRight(request, *connection, context_.keyspace); !s.ok()) {
    SetStatus(s, &reply);
    return AnswerWith(connection, reply.SerializeAsString());
  }
  bool would_wait = false;
  service_.Execute(client, request, &reply, &would_wait);
  if (!would_wait) return AnswerWith(connection, reply.SerializeAsString());
  if (!Begin()) {
    server_->Answer(connection, Status::Unavailable("this member ends"), {});
    return;
  }
  executor_->Schedule([this, client, id = connection->id, kept = std::move(request)] {
    sharding::MemberReply late;
    service_.Execute(client, kept, &late, nullptr);
    {
      MutexLock lock(&mutex_);
      done_.push_back({.connection = id, .client = client, .reply = late.SerializeAsString()});
    }
    server_->Wake();
    MutexLock lock(&mutex_);
    if (--under_way_ == 0) ended_.SignalAll();
  });
}

bool ShardServer::Begin() {
  MutexLock lock(&mutex_);
  if (stopping_) return false;
  ++under_way_;
  return true;
}

void ShardServer::OnIo() {
  std::vector<Done> done;
  {
    MutexLock lock(&mutex_);
    done.swap(done_);
  }
  for (Done& each : done) {
    pool::ServerConnection* const connection = server_->Find(each.connection);
    if (connection != nullptr) {
      AnswerWith(connection, std::move(each.reply));
    } else if (!server_->HasLifeline(each.client)) {
      // The client ended before it got what this has left for it.
      EndClient(each.client);
    }
  }
}

void ShardServer::LifelineEnded(uint64_t client_id, bool /*hung_up*/) { EndClient(client_id); }

void ShardServer::EndClient(uint64_t client) {
  for (const auto& [shard, batch] : clients_.EndClient(client))
    context_.served->Orphaned(shard, batch);
}

}  // namespace nacre
