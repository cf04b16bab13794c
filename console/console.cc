#include "console/console.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "console/guard.h"
#include "console/http_server.h"
#include "console/page_files.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::console {
namespace {

using httplib::Request;
using httplib::Response;

constexpr const char* kJson = "application/json";
/// Only scripts and styles of our own; no other page shows this one in a frame.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What no page of another origin can send without being asked first, which it is not.
constexpr const char* kOrderHeader = "X-Nacre-Console";
constexpr std::string_view kMessageMark = "<!--message-->";

int HttpStatusOf(const Status& status) {
  if (status.IsInvalidArgument()) return 400;
  if (status.IsNotFound()) return 404;
  if (status.IsBusy() || status.IsTryAgain()) return 409;
  if (status.IsNotSupported()) return 501;
  if (status.IsUnavailable() || status.IsTimedOut()) return 503;
  return 500;
}

void Fail(Response* response, int http_status, const std::string& text) {
  response->status = http_status;
  response->set_content("{\"error\": " + JsonString(text) + "}\n", kJson);
}

const char* TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

std::string FileText(std::string_view name) {
  for (const PageFile& file : PageFiles()) {
    if (file.name == name) return std::string(file.text());
  }
  return "";
}

/// 32 random bytes as hexadecimal digits.
Status DrawSession(std::string* session) {
  std::array<unsigned char, 32> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return Status::IOError("the system has no random numbers for sessions");
  }
  for (const unsigned char byte : bytes) *session += fmt::format("{:02x}", byte);
  return Status::OK();
}

/// "order" and "node" as an order.
Status ParseOrder(const Request& request, Order* order) {
  const std::string name = request.get_param_value("order");
  order->node = request.get_param_value("node");
  if (name == "drain" || name == "undrain") {
    order->kind = name == "drain" ? Order::Kind::kDrain : Order::Kind::kUndrain;
    return order->node.empty() ? Status::InvalidArgument(name + ": node is missing") : Status::OK();
  }
  if (name == "pause-repair" || name == "resume-repair") {
    order->kind = name == "pause-repair" ? Order::Kind::kPauseRepair : Order::Kind::kResumeRepair;
    return Status::OK();
  }
  return Status::InvalidArgument(fmt::format("unknown order '{}'", name));
}

Status ParseKeyQuery(const Request& request, KeyQuery* query) {
  query->database = request.get_param_value("database");
  if (query->database.empty()) return Status::InvalidArgument("database is missing");
  if (request.has_param("family")) query->family = request.get_param_value("family");
  NACRE_RETURN_IF_ERROR(
      BytesOfHex(request.get_param_value("prefix"), &query->prefix).WithContext("prefix"));
  NACRE_RETURN_IF_ERROR(
      BytesOfHex(request.get_param_value("from"), &query->from).WithContext("from"));
  if (request.has_param("limit")) {
    uint64_t limit = 0;
    NACRE_RETURN_IF_ERROR(
        ParseNumber(request.get_param_value("limit"), 1, KeyBrowser::kRowsMax, &limit)
            .WithContext("limit"));
    query->limit = limit;
  }
  return Status::OK();
}

class HttpConsole : public Console {
 public:
  HttpConsole(const ConsoleOptions& options, std::string session, ConsoleSource* source,
              KeyBrowser* browser, Clock* clock)
      : allow_orders_(options.allow_orders),
        guard_(options.token, options.hosts, std::move(session)),
        source_(source),
        browser_(browser),
        clock_(clock),
        server_(clock) {
    server_.set_default_headers({{"Content-Security-Policy", kContentPolicy},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"X-Frame-Options", "DENY"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"},
                                 {"Cross-Origin-Opener-Policy", "same-origin"},
                                 {"Cache-Control", "no-store"}});
    server_.set_pre_routing_handler([this](const Request& request, Response& response) {
      return Refuse(request, &response) ? httplib::Server::HandlerResponse::Handled
                                        : httplib::Server::HandlerResponse::Unhandled;
    });
    server_.set_exception_handler(
        [](const Request&, Response& response, const std::exception_ptr& thrown) {
          try {
            std::rethrow_exception(thrown);
          } catch (const std::exception& e) {
            Fail(&response, 500, e.what());
          }
        });
    server_.set_error_handler([](const Request& request, Response& response) {
      if (!response.body.empty()) return;
      Fail(&response, response.status,
           response.status == 404 ? "there is no " + request.path : "the request was refused");
    });
    AddPage();
    AddData();
    AddChanges();
  }
  ~HttpConsole() override {
    server_.stop();
    if (thread_.joinable()) thread_.Join();
  }

  Status Listen(const std::string& text) {
    ListenAddress address;
    NACRE_RETURN_IF_ERROR(ParseListenAddress(text, &address));
    if (!guard_.asks_for_token() && !IsLoopback(address.host)) {
      return Status::InvalidArgument(fmt::format(
          "{}: other machines may reach this address, so that a token has to be asked for; name "
          "a file that holds one, or listen at 127.0.0.1 or ::1",
          text));
    }
    const int port = address.port == 0 ? server_.bind_to_any_port(address.host)
                     : server_.bind_to_port(address.host, address.port) ? address.port
                                                                        : -1;
    if (port < 0) {
      return Status::IOError(fmt::format(
          "cannot listen at {}: is it an address of this machine, and is the port free?", text));
    }
    const bool v6 = address.host.find(':') != std::string::npos;
    address_ = fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", port);
    thread_ = Thread("nacre-console", [this] {
      server_.listen_after_bind();
      // Release: pairs with the acquire below.
      ended_.store(true, std::memory_order_release);
    });
    // Until then it cannot be stopped.
    while (!server_.is_running() && !ended_.load(std::memory_order_acquire)) {
      clock_->SleepFor(std::chrono::milliseconds(1));
    }
    return Status::OK();
  }

  const std::string& address() const override { return address_; }

 private:
  /// Whether the request goes no further; then it is answered.
  bool Refuse(const Request& request, Response* response) const {
    const std::string host = request.get_header_value("Host");
    if (!guard_.KnowsHost(host)) {
      Fail(response, 403,
           fmt::format("'{}' is no name of this console; --hosts gives it further names", host));
      return true;
    }
    const bool data = request.path.starts_with("/api/");
    if (data && request.get_header_value("Sec-Fetch-Site") == "cross-site") {
      Fail(response, 403, "a page elsewhere asks for this");
      return true;
    }
    // Style and icon tell nothing, and the form of the token needs them.
    if (request.path == "/login" || request.path == "/console.css" || request.path == "/icon.svg" ||
        guard_.Admits(request.get_header_value("Authorization"),
                      request.get_header_value("Cookie"))) {
      return false;
    }
    if (data) {
      Fail(response, 401, "the token is missing: 'Authorization: Bearer TOKEN', or log in");
      response->set_header("WWW-Authenticate", "Bearer");
    } else {
      response->set_redirect("/login", 303);
    }
    return true;
  }

  void AddPage() {
    const auto serve = [this](const char* path, const char* name) {
      server_.Get(path,
                  [text = FileText(name), type = TypeOf(name)](const Request&, Response& response) {
                    response.set_content(text, type);
                  });
    };
    serve("/", "index.html");
    serve("/console\\.css", "console.css");
    serve("/icon\\.svg", "icon.svg");
    for (const PageFile& file : PageFiles()) {
      if (!file.name.ends_with(".js")) continue;
      const std::string name(file.name);
      serve(("/" + name.substr(0, name.size() - 3) + "\\.js").c_str(), name.c_str());
    }
    server_.Get("/login", [this](const Request&, Response& response) {
      if (!guard_.asks_for_token()) return response.set_redirect("/", 303);
      response.set_content(FileText("login.html"), TypeOf("login.html"));
    });
    server_.Post("/login", [this](const Request& request, Response& response) {
      if (!guard_.asks_for_token()) return response.set_redirect("/", 303);
      if (guard_.IsToken(request.get_param_value("token"))) {
        response.set_header("Set-Cookie", guard_.SetCookie());
        return response.set_redirect("/", 303);
      }
      std::string page = FileText("login.html");
      page.replace(page.find(kMessageMark), kMessageMark.size(),
                   "<p class=\"bad\" role=\"alert\">This is not the token.</p>");
      response.status = 403;
      response.set_content(page, TypeOf("login.html"));
    });
  }

  void AddData() {
    server_.Get("/api/pool", [this](const Request& request, Response& response) {
      uint64_t after = 0;
      if (request.has_param("after")) {
        const Status status = ParseNumber(request.get_param_value("after"), 0, UINT64_MAX, &after);
        if (!status.ok()) return Fail(&response, 400, "after: " + status.ToString());
        if (source_->samples() == after) {
          response.status = 204;
          return;
        }
      }
      response.set_content(
          fmt::format("{{\"orders\": {},\n\"pool\": {}}}\n", allow_orders_, source_->PoolJson()),
          kJson);
    });
    const auto serve = [this](const char* path, auto text) {
      server_.Get(path, [text](const Request&, Response& response) {
        response.set_content(text(), kJson);
      });
    };
    serve("/api/history", [this] { return source_->HistoryJson(); });
    serve("/api/levels", [this] { return source_->LevelsJson(); });
    serve("/api/doctor", [this] { return source_->DoctorJson(); });
    server_.Get("/api/keys", [this](const Request& request, Response& response) {
      KeyQuery query;
      KeyPage page;
      Status status = ParseKeyQuery(request, &query);
      if (status.ok()) status = browser_->Look(query, &page);
      if (!status.ok()) return Fail(&response, HttpStatusOf(status), status.ToString());
      response.set_content(KeyPageJson(page), kJson);
    });
  }

  void AddChanges() {
    server_.Post("/api/orders", [this](const Request& request, Response& response) {
      if (!allow_orders_) {
        return Fail(&response, 403, "this console only shows; --allow_orders has it take orders");
      }
      if (!request.has_header(kOrderHeader)) {
        return Fail(&response, 403, fmt::format("the header {} is missing", kOrderHeader));
      }
      Order order;
      Status status = ParseOrder(request, &order);
      if (status.ok()) status = source_->Carry(order);
      if (!status.ok()) return Fail(&response, HttpStatusOf(status), status.ToString());
      response.set_content("{}\n", kJson);
    });
  }

  const bool allow_orders_;
  const Guard guard_;
  ConsoleSource* const source_;
  KeyBrowser* const browser_;
  Clock* const clock_;
  std::string address_;
  std::atomic<bool> ended_{false};
  HttpServer server_;
  Thread thread_;
};

}  // namespace

Status Console::Open(const ConsoleOptions& options, ConsoleSource* source, KeyBrowser* browser,
                     Clock* clock, std::unique_ptr<Console>* console) {
  std::string session;
  NACRE_RETURN_IF_ERROR(DrawSession(&session));
  auto opened = std::make_unique<HttpConsole>(options, std::move(session), source, browser, clock);
  NACRE_RETURN_IF_ERROR(opened->Listen(options.listen));
  *console = std::move(opened);
  return Status::OK();
}

}  // namespace nacre::console
