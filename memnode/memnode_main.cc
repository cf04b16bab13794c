// nacre-memnode: one memory node.

#include <fmt/format.h>
#include <gflags/gflags.h>
#include <signal.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memnode/memory_node.h"
#include "memnode/plugin_loader.h"
#include "memnode/secret_watch.h"
#include "metrics/endpoint.h"
#include "metrics/page.h"
#include "pool/connect/pool_secret.h"
#include "pool/wire/node_stats.h"
#include "util/api/program_version.h"
#include "util/log.h"
#include "util/uri.h"

DEFINE_string(listen, "",
              "where to serve, such as shm:/run/nacre/n0.sock; ?secret_file=PATH, or "
              "NACRE_SECRET_FILE or NACRE_SECRET in the environment, give the pool's secret");
DEFINE_string(size, "", "memory to lend out, such as 8GiB");
DEFINE_string(slab_size, "64MiB",
              "unit in which memory is leased; all nodes of a pool agree on it");
DEFINE_bool(populate, false,
            "take all of the memory from the system at the start, in huge pages where it gives "
            "them: what comes later is faster");
DEFINE_int32(workers, 1, "threads that run compactions, and as many for flushes");
DEFINE_string(plugin, "",
              "shared libraries (PATH,PATH,...) with comparators, merge operators and compaction "
              "filters that jobs may need");
DEFINE_string(
    domain, "",
    "failure domain, such as rack1: nodes of one domain may fail together, and get no two "
    "fragments of a table; empty: a domain of its own");
DEFINE_string(region_file, "",
              "keep the memory in this file, in tmpfs or of huge pages, so that a node which is "
              "started anew on it has what it had; all of it is taken at the start");
DEFINE_string(
    memory, "",
    "dax:PATH: lend out this memory, a dax device (/dev/dax0.0) or a file that stands for "
    "one, in place; what --listen=cxl:PATH wants");
DEFINE_bool(region_reset, false,
            "begin empty whatever --region_file or --memory holds: for one that is damaged, or was "
            "another node's");
DEFINE_string(log_file, "", "append a log to this file");
DEFINE_string(metrics, "", "HOST:PORT to answer GET /metrics at, for Prometheus");

namespace nacre::pool {
namespace {

/// The node's statistics, as Prometheus asks for them.
class NodeMetrics final : public metrics::Source {
 public:
  explicit NodeMetrics(const MemoryNode* node) : node_(node) {}

  void Collect(metrics::Page* page) const override {
    const NodeStats stats = node_->stats();
    for (const NodeFigure& figure : NodeFigures()) {
      const auto number = static_cast<double>(stats.*figure.value);
      page->Add({figure.metric, figure.help,
                 figure.is_counter() ? metrics::Kind::kCounter : metrics::Kind::kGauge},
                {{"node", stats.address}}, figure.is_time() ? number * 1e-9 : number);
    }
  }

 private:
  const MemoryNode* const node_;
};

/// The process's only thread that takes these signals is the one that waits for them.
sigset_t BlockSignals() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return blocked;
}

/// Waits for one that ends the process, and sees to the secrets meanwhile. `watch` may be null.
void AwaitStop(const sigset_t& signals, SecretWatch* watch) {
  constexpr timespec kLookPeriod{.tv_sec = 1, .tv_nsec = 0};
  while (true) {
    const int number = sigtimedwait(&signals, nullptr, &kLookPeriod);
    if (number == SIGTERM || number == SIGINT) return;
    if (watch == nullptr) continue;
    number == SIGHUP ? watch->Reload() : watch->Look();
  }
}

/// What --memory says, which belongs to a scheme: over `shm` peers keep what they have mapped.
Status ParseMemory(const std::string& scheme, std::string* path) {
  constexpr std::string_view kDax = "dax:";
  if (FLAGS_memory.empty()) {
    if (scheme != "cxl") return Status::OK();
    return Status::InvalidArgument("--listen=cxl: wants --memory=dax:PATH, which peers then map");
  }
  if (!FLAGS_memory.starts_with(kDax) || FLAGS_memory.size() == kDax.size()) {
    return Status::InvalidArgument(fmt::format("--memory: '{}' is not dax:PATH", FLAGS_memory));
  }
  if (!FLAGS_region_file.empty()) {
    return Status::InvalidArgument("--memory and --region_file exclude one another");
  }
  if (scheme == "shm") {
    return Status::InvalidArgument("--memory over shm: serve it as --listen=cxl:PATH");
  }
  *path = FLAGS_memory.substr(kDax.size());
  return Status::OK();
}

Status ParseFlags(MemoryNodeOptions* options, Uri* listen) {
  if (FLAGS_listen.empty()) return Status::InvalidArgument("--listen is missing");
  NACRE_RETURN_IF_ERROR(ParseUri(FLAGS_listen, listen).WithContext("--listen"));
  if (listen->addresses.size() != 1) {
    return Status::InvalidArgument(fmt::format("--listen: '{}' names {} addresses, not one",
                                               FLAGS_listen, listen->addresses.size()));
  }
  options->listen = listen->scheme + ":" + listen->addresses[0];
  if (FLAGS_size.empty()) return Status::InvalidArgument("--size is missing");
  NACRE_RETURN_IF_ERROR(ParseSize(FLAGS_size, &options->region_bytes).WithContext("--size"));
  if (options->region_bytes == 0) return Status::InvalidArgument("--size: 0 bytes");
  NACRE_RETURN_IF_ERROR(
      ParseSize(FLAGS_slab_size, &options->slab_bytes).WithContext("--slab_size"));
  if (FLAGS_region_reset && FLAGS_region_file.empty() && FLAGS_memory.empty()) {
    return Status::InvalidArgument("--region_reset without a --region_file or --memory");
  }
  NACRE_RETURN_IF_ERROR(ParseMemory(listen->scheme, &options->region_memory));
  options->region_file = FLAGS_region_file;
  options->region_reset = FLAGS_region_reset;
  options->domain = FLAGS_domain;
  options->populate = FLAGS_populate;
  options->workers = FLAGS_workers;
  if (!FLAGS_log_file.empty()) {
    Status opened;
    options->log = NewFileLogger(FLAGS_log_file, &opened);
    NACRE_RETURN_IF_ERROR(opened.WithContext("--log_file"));
  }
  return Status::OK();
}

Status LoadPlugins(MemoryNodeOptions* options) {
  auto registry = std::make_shared<PluginRegistry>();
  std::istringstream paths(FLAGS_plugin);
  for (std::string path; std::getline(paths, path, ',');) {
    std::string added;
    NACRE_RETURN_IF_ERROR(LoadPlugin(path, registry.get(), &added).WithContext("--plugin"));
    Log(options->log, LogLevel::kInfo, "{}", added);
  }
  options->plugins = std::move(registry);
  return Status::OK();
}

Status Run() {
  const sigset_t signals = BlockSignals();
  MemoryNodeOptions options;
  Uri listen;
  NACRE_RETURN_IF_ERROR(ParseFlags(&options, &listen));
  NACRE_RETURN_IF_ERROR(LoadPlugins(&options));
  std::unique_ptr<rdma::Device> device;
  // Without a log, standard error tells of refused strangers.
  const std::shared_ptr<Logger> log =
      options.log != nullptr ? options.log : NewStderrLogger(LogLevel::kWarn);
  SecretSource secrets;
  NACRE_RETURN_IF_ERROR(TakeSecrets(&listen, log, &secrets).WithContext("--listen"));
  options.device = {.parameters = listen.parameters, .logger = log};
  if (!secrets.file.lines.empty()) {
    NACRE_RETURN_IF_ERROR(rdma::SecretRing::Create(secrets.file.Terms(), &options.device.ring));
    if (!secrets.file.own().rights.may_administer()) {
      Log(log, LogLevel::kWarn,
          "secret file '{}' has no secret with the right 'admin': this node proves '{}' to other "
          "nodes, which may refuse its compactions",
          secrets.path, NameOf(secrets.file.own()));
    }
  }
  options.quotas = secrets.file.quotas;
  NACRE_RETURN_IF_ERROR(rdma::OpenDevice(listen.scheme, options.device, Clock::System(), &device)
                            .WithContext("--listen"));
  std::unique_ptr<MemoryNode> node;
  NACRE_RETURN_IF_ERROR(MemoryNode::Start(options, device.get(), Clock::System(), &node));
  const NodeMetrics source(node.get());
  std::unique_ptr<metrics::Endpoint> endpoint;
  if (!FLAGS_metrics.empty()) {
    NACRE_RETURN_IF_ERROR(
        metrics::Endpoint::Open(FLAGS_metrics, &endpoint).WithContext("--metrics"));
    endpoint->Show(&source);
  }

  const NodeStats stats = node->stats();
  fmt::print("ready: {} with {} slabs of {}{}\n", node->address(), stats.slabs_total,
             FormatBytes(stats.slab_bytes),
             stats.keeping == Keeping::kWarm
                 ? fmt::format(", warm: {} of them in use", stats.slabs_leased)
                 : "");
  std::fflush(stdout);
  std::unique_ptr<SecretWatch> watch;
  if (!secrets.path.empty()) {
    watch = std::make_unique<SecretWatch>(
        secrets, options.device.ring,
        [&node](std::vector<SecretFile::Quota> quotas) { node->SetQuotas(std::move(quotas)); },
        log);
  }
  AwaitStop(signals, watch.get());
  endpoint.reset();
  node->Stop();
  return Status::OK();
}

}  // namespace
}  // namespace nacre::pool

int main(int argc, char** argv) {
  gflags::SetUsageMessage("one memory node of Nacre: lends out memory, runs compactions");
  if (nacre::ParseFlagsOrPrintVersion("nacre-memnode", &argc, &argv)) return 0;
  nacre::Status s;
  if (argc > 1) {
    s = nacre::Status::InvalidArgument(fmt::format("unexpected argument '{}'", argv[1]));
  } else {
    s = nacre::pool::Run();
  }
  if (s.ok()) return 0;
  fmt::print(stderr, "nacre-memnode: {}\n", s.ToString());
  return 1;
}
