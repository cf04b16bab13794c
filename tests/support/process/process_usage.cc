#include "tests/support/process/process_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace nacre {

namespace {

constexpr std::chrono::seconds kUsagePatience{30};
constexpr std::chrono::milliseconds kLook{10};
/// So many looks, of at most so many, with the same result.
constexpr int kLooksAlike = 25;
constexpr int kLooksMax = 500;

size_t CountRdmaResources(pid_t process) {
  std::error_code absent;
  if (std::filesystem::is_empty("/sys/class/infiniband", absent) || absent) return 0;
  // Lines such as "link rxe0/1 lqpn 17 type RC state RTS ... pid 345 comm nacre-memnode".
  const std::string wanted = " pid " + std::to_string(process) + " ";
  size_t count = 0;
  FILE* const pipe = popen("printf 'resource show %s\\n' qp mr cq pd cm_id | rdma -b -", "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return 0;
  std::array<char, 512> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    count += std::string(line.data()).find(wanted) != std::string::npos;
  }
  EXPECT_EQ(pclose(pipe), 0);
  return count;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ProcessUsage& usage) {
  return out << usage.descriptors << " descriptors (" << usage.sockets << " sockets), "
             << usage.threads << " threads, " << usage.shared_mappings << " shared mappings, "
             << usage.rdma_resources << " RDMA resources, " << usage.resident_bytes
             << " bytes resident";
}

ProcessUsage UsageOf(pid_t process) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path("/proc") / std::to_string(process);
  ProcessUsage usage;
  std::error_code gone;  // Descriptors and threads come and go while they are listed.
  for (fs::directory_iterator file(folder / "fd", gone), end; !gone && file != end;
       file.increment(gone)) {
    usage.descriptors++;
    std::error_code closed;
    const std::string target = fs::read_symlink(file->path(), closed).string();
    if (!closed && target.starts_with("socket:")) usage.sockets++;
  }
  gone.clear();
  for (fs::directory_iterator thread(folder / "task", gone), end; !gone && thread != end;
       thread.increment(gone)) {
    usage.threads++;
  }
  // "7f12a4000000-7f12a4021000 rw-s 00000000 00:01 1234 /memfd:name"
  std::ifstream mappings(folder / "maps");
  for (std::string line; std::getline(mappings, line);) {
    const size_t permissions = line.find(' ') + 1;
    if (line.size() > permissions + 3 && line[permissions + 3] == 's') usage.shared_mappings++;
  }
  std::ifstream pages(folder / "statm");
  size_t total = 0;
  size_t resident = 0;
  if (pages >> total >> resident) {
    usage.resident_bytes = resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }
  return usage;
}

ProcessUsage UsageAtRest(pid_t process) {
  ProcessUsage usage = UsageOf(process);
  for (int alike = 0, looks = 0; alike < kLooksAlike && looks < kLooksMax; looks++) {
    std::this_thread::sleep_for(kLook);
    const ProcessUsage now = UsageOf(process);
    alike = now.Within(usage) && usage.Within(now) ? alike + 1 : 0;
    usage = now;
  }
  usage.rdma_resources = CountRdmaResources(process);
  return usage;
}

ProcessUsage AwaitUsage(pid_t process, const ProcessUsage& limit) {
  const auto deadline = std::chrono::steady_clock::now() + kUsagePatience;
  while (true) {
    ProcessUsage usage = UsageOf(process);
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (usage.Within(limit) || late) usage.rdma_resources = CountRdmaResources(process);
    if (usage.Within(limit) || late) return usage;
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace nacre
