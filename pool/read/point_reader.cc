#include "pool/read/point_reader.h"

#include <algorithm>
#include <memory>

#include "pool/read/client_session.h"
#include "pool/read/point_sessions.h"
#include "util/perf_step.h"
#include "util/thread_index.h"

namespace nacre::pool {

PointSessions::PointSessions(Fabric* fabric, int max_queue_pairs_per_node) : fabric_(fabric) {
  if (max_queue_pairs_per_node == 0) return;
  const int readers = std::max(1, max_queue_pairs_per_node - StreamLimit(max_queue_pairs_per_node));
  for (int i = 0; i < readers; ++i) turns_.push_back(std::make_unique<PointReader::Turn>());
}

PointSessions::~PointSessions() {
  own_.ForEach([](const Slot& slot) { delete slot.session; });
}

PointReader::PointReader(PointSessions* sessions) {
  if (sessions->turns_.empty()) [[likely]] {
    ClientSession*& mine = sessions->own_.Mine().session;
    if (mine == nullptr) [[unlikely]] {
      std::unique_ptr<ClientSession> made;
      failure_ = ClientSession::Create(sessions->fabric_, &made);
      mine = made.release();
    }
    session_ = mine;
    return;
  }
  // Whichever is free; if none is, the one that this thread always waits for.
  const auto& turns = sessions->turns_;
  const size_t first = ThreadIndex::Current() % turns.size();
  for (size_t i = 0; i < turns.size() && turn_ == nullptr; ++i) {
    Turn* turn = turns[(first + i) % turns.size()].get();
    if (turn->TryTake()) turn_ = turn;
  }
  if (turn_ == nullptr) {
    turn_ = turns[first].get();
    turn_->Take();
  }
  if (turn_->session == nullptr) {
    failure_ = ClientSession::Create(sessions->fabric_, &turn_->session);
  }
  session_ = turn_->session.get();
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
