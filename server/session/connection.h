#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/task.h"
#include "server/loop/event_loop.h"
#include "server/net/client_stream.h"
#include "server/resp/request_parser.h"
#include "server/session/client.h"
#include "server/session/command.h"
#include "server/session/server_state.h"

namespace nacre::server {

/// The socket of a client: takes requests from it, begins them in their order, many before the
/// first is answered where that is safe, and sends the answers in that order.
///
/// It owns itself: the loop and each command that is under way keep it.
/// Thread safety: code of its loop only.
class Connection final : public Client,
                         public EventLoop::Handler,
                         public std::enable_shared_from_this<Connection> {
 public:
  static constexpr size_t kUnansweredMax = 1024;
  /// So many commands are run together at most, and with so many bytes of arguments.
  static constexpr size_t kTogetherMax = 128;
  static constexpr size_t kTogetherBytesMax = size_t{256} << 10;
  /// It is not read from a client that leaves so much of its answers unread.
  static constexpr size_t kUnsentBytesMax = size_t{64} << 20;
  /// Nor while so much is here that cannot begin yet.
  static constexpr size_t kUnparsedBytesMax = size_t{1} << 20;

  /// Takes over a socket that is counted in `server->connections`. Called on the loop.
  static void Start(int socket, Origin origin, ServerState* server, LoopState* loop);
  Connection(int socket, std::unique_ptr<ClientStream> stream, ServerState* server,
             LoopState* loop);
  ~Connection() override;

  void OnEvents(uint32_t events) override;
  void LetNextBegin(const Call* call) override;
  void Send(std::string_view bytes) override;
  void CloseSoon() override;
  void Close() override;

 private:
  void Receive();
  std::unique_ptr<Call> NewCall();
  /// Its answer was taken.
  void Retire(std::unique_ptr<Call> call);
  const Command* FindCommand(std::string_view word);
  /// Begins what may begin.
  void BeginNext();
  /// Takes `next_` from what has arrived, if there is none. False if nothing has arrived whole.
  bool TakeRequest();
  void Begin(std::unique_ptr<Call> call);
  /// Takes its place among those that will be answered.
  Call* Admit(std::unique_ptr<Call> call);
  /// What has arrived behind `first` and can be run together with it, which is the first of them.
  std::vector<Call*> TakeTogether(Call* first);
  Task<void> Run(std::shared_ptr<Connection> self, std::vector<Call*> calls);
  void NoteSlow(const Call& call, int64_t micros) const;
  /// Answers without running it what may not run; true if so.
  bool Refuse(Call* call) const;
  /// Queues it within MULTI; true if so.
  bool Queue(Call* call);
  /// Moves the answers that are due to the output.
  void TakeAnswers();
  void FlushSoon();
  void Flush();
  void UpdateEvents();

  const int socket_;
  const std::unique_ptr<ClientStream> stream_;
  ServerState* const server_;
  LoopState* const loop_;
  RequestParser parser_;
  std::unique_ptr<Call> next_;               ///< It was parsed, and cannot begin yet.
  std::deque<std::unique_ptr<Call>> calls_;  ///< They are not answered yet, in order.
  const Command* found_ = nullptr;           ///< By the request before; or null.
  const Call* barrier_ = nullptr;            ///< Nothing begins until this has let it.
  std::shared_ptr<Connection> self_;         ///< While the socket is open.
  std::string output_;
  size_t sent_ = 0;  ///< The part of the output that was sent.
  uint32_t events_ = 0;
  bool receiving_needs_room_ = false;  ///< As a TLS handshake may.
  bool sending_needs_input_ = false;
  bool beginning_ = false;
  bool flushing_soon_ = false;
  bool closed_ = false;
};

}  // namespace nacre::server
