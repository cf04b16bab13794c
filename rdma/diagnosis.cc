#include "rdma/diagnosis.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "rdma/verbs/diagnosis.h"
#include "util/uri.h"

namespace nacre::rdma {

namespace {

using FindingVerdict = Finding::Verdict;

/// "always [madvise] never" gives "madvise"; empty if the file is not there.
std::string ChosenWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (word.size() > 2 && word.front() == '[' && word.back() == ']') {
      return word.substr(1, word.size() - 2);
    }
  }
  return "";
}

/// `path` says whether huge pages are given to memory of kind `subject`.
Finding HugePages(const std::string& subject, const std::string& path, const std::string& wanted) {
  const std::string chosen = ChosenWord(path);
  if (chosen.empty()) {
    return {FindingVerdict::kWarning, subject, "this kernel has none",
            "a kernel with CONFIG_TRANSPARENT_HUGEPAGE makes random reads a third faster"};
  }
  if (chosen == "never" || chosen == "deny") {
    return {FindingVerdict::kWarning, subject, chosen, "echo " + wanted + " > " + path};
  }
  return {FindingVerdict::kOk, subject, chosen, ""};
}

Finding OpenFiles() {
  constexpr rlim_t kEnough = 4096;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 0;
  Finding finding{FindingVerdict::kOk, "open files", std::to_string(limit.rlim_cur), ""};
  if (limit.rlim_cur < kEnough) {
    finding.verdict = FindingVerdict::kWarning;
    finding.remedy =
        "each thread has connections to each node: 'ulimit -n 65536', or LimitNOFILE=65536 in the "
        "service's unit";
  }
  return finding;
}

/// The dax devices that the kernel lists in `folder`.
Finding DaxDevices(const std::string& folder) {
  std::string devices;
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator(folder, error)) {
    uint64_t bytes = 0;
    std::ifstream(device.path() / "size") >> bytes;
    devices += (devices.empty() ? "" : ", ") + device.path().filename().string() + " of " +
               FormatBytes(bytes);
  }
  if (!devices.empty()) return {FindingVerdict::kOk, "dax devices", devices, ""};
  return {FindingVerdict::kWarning, "dax devices", "there is none",
          "'daxctl list' and 'cxl list' say why; for a trial a file in tmpfs stands for one"};
}

}  // namespace

std::vector<Finding> Diagnose(const std::string& scheme,
                              const std::map<std::string, std::string>& parameters,
                              const std::vector<std::string>& peers) {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  std::vector<Finding> findings;
  findings.push_back(OpenFiles());
  findings.push_back(HugePages("huge pages", folder + "enabled", "madvise"));
  if (scheme == "shm" || scheme == "cxl") {
    findings.push_back(HugePages("huge pages, shared", folder + "shmem_enabled", "advise"));
  }
  if (scheme == "cxl") findings.push_back(DaxDevices("/sys/bus/dax/devices"));
  if (scheme == "verbs") DiagnoseVerbs(parameters, peers, &findings);
  return findings;
}

}  // namespace nacre::rdma
