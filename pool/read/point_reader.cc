#include <memory>

#include "pool/pool_client_rep.h"
#include "pool/read/client_session.h"
#include "util/perf_step.h"
#include "util/thread_index.h"

namespace nacre::pool {

namespace {

/// Into `*session`, unless it is there already.
Status EnsureSession(Fabric* fabric, ClientSession** session) {
  if (*session != nullptr) [[likely]]
    return Status::OK();
  std::unique_ptr<ClientSession> made;
  NACRE_RETURN_IF_ERROR(ClientSession::Create(fabric, &made));
  *session = made.release();
  return Status::OK();
}

}  // namespace

PointReader::PointReader(PoolClient* client) {
  PoolClient::Rep* rep = client->rep_.get();
  if (rep->turns.empty()) [[likely]] {
    ClientSession*& mine = rep->sessions.Mine().session;
    failure_ = EnsureSession(&rep->fabric, &mine);
    session_ = mine;
    return;
  }
  // Whichever is free; if none is, the one that this thread always waits for.
  const size_t first = ThreadIndex::Current() % rep->turns.size();
  for (size_t i = 0; i < rep->turns.size() && turn_ == nullptr; ++i) {
    Turn* turn = rep->turns[(first + i) % rep->turns.size()].get();
    if (turn->TryTake()) turn_ = turn;
  }
  if (turn_ == nullptr) {
    turn_ = rep->turns[first].get();
    turn_->Take();
  }
  failure_ = EnsureSession(&rep->fabric, &turn_->session);
  session_ = turn_->session;
}

namespace {

void CountReads(std::span<const PointRead> reads) {
  if (!PerfCounts()) [[likely]]
    return;
  CountPerf(&PerfContext::remote_read_count, reads.size());
  for (const PointRead& read : reads) CountPerf(&PerfContext::remote_read_bytes, read.length);
}

}  // namespace

void PointReader::EndTurn() { turn_->Give(); }

void PointReader::Fail(std::span<PointRead> reads) const {
  for (PointRead& read : reads) read.status = failure_;
}

void PointReader::ReadAll(std::span<PointRead> reads) {
  CountReads(reads);
  const PerfTimer timer(&PerfContext::remote_read_wait_nanos);
  session_ != nullptr ? session_->ReadAll(reads) : Fail(reads);
}

void PointReader::StartReads(std::span<PointRead> reads) {
  CountReads(reads);
  ++started_;
  session_ != nullptr ? session_->StartReads(reads) : Fail(reads);
}

void PointReader::FinishReads() {
  const PerfTimer timer(&PerfContext::remote_read_wait_nanos);
  if (session_ != nullptr) [[likely]]
    session_->FinishReads();
  --started_;
}

}  // namespace nacre::pool
