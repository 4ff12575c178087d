#include "launcher/platform/job_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "lib/core/clock.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kMostRounds = 100;
constexpr milliseconds kCgroupPatience{10'000}, kCgroupLook{1};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_text(const fs::path& path, const std::string& text) {
  const core::Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t written = ::write(file.get(), text.data(), text.size());
}

std::vector<pid_t> members(const fs::path& cgroup) {
  std::ifstream file(cgroup / "cgroup.procs");
  return {std::istream_iterator<pid_t>(file), std::istream_iterator<pid_t>()};
}

// Removes a cgroup and the ones that its members made; their files go with the folders.
bool remove_folders(const fs::path& cgroup) {
  if (::rmdir(cgroup.c_str()) == 0 || errno == ENOENT) return true;
  std::error_code error;
  std::vector<fs::path> folders{cgroup};
  for (const auto& entry : fs::recursive_directory_iterator(cgroup, error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  std::reverse(folders.begin(), folders.end());  // inner folders go first
  for (const fs::path& folder : folders) {
    if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) return false;
  }
  return true;
}

}  // namespace

fs::path find_cgroup(std::string_view mounts, std::string_view cgroups) {
  constexpr std::string_view kUnified = "0::";
  std::string own;
  std::istringstream entries{std::string(cgroups)};
  for (std::string line; std::getline(entries, line);) {
    if (line.starts_with(kUnified)) own = line.substr(kUnified.size());
  }
  if (own.empty() || own.starts_with("/..")) return {};
  // "36 25 0:30 ROOT MOUNT OPTIONS [MORE...] - cgroup2 SOURCE OPTIONS"
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string number, parent, device, root, mount;
    words >> number >> parent >> device >> root >> mount;
    if (root == "/") return mount + own;
    if (own == root || own.starts_with(root + "/")) return mount + own.substr(root.size());
  }
  return {};
}

fs::path own_cgroup() {
  if (std::getenv("SLURM_JOB_ID") != nullptr) return {};
  return find_cgroup(read_text("/proc/self/mountinfo"), read_text("/proc/self/cgroup"));
}

JobCgroup::JobCgroup(const fs::path& parent) {
  if (parent.empty()) return;
  path_ = parent / fmt::format("scaletrain-{}-{:x}", ::getpid(),
                               std::chrono::system_clock::now().time_since_epoch().count());
}

void JobCgroup::make() {
  if (path_.empty() || ::mkdir(path_.c_str(), 0755) != 0) return;
  if (::access((path_ / "cgroup.procs").c_str(), W_OK) == 0) {
    folder_ = core::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  if (!folder_) ::rmdir(path_.c_str());
}

void JobCgroup::release() const {
  if (!folder_) return;
  // Processes that a member starts in the meantime are killed in the next pass.
  for (int round = 0; !remove_folders(path_) && round < kMostRounds; ++round) {
    for (const pid_t member : members(path_)) {
      write_text(path_.parent_path() / "cgroup.procs", std::to_string(member));
    }
  }
}

void JobCgroup::end() const {
  if (path_.empty()) return;
  const core::SteadyTime limit = core::now() + kCgroupPatience;
  write_text(path_ / "cgroup.kill", "1");  // Linux 5.14 and newer; older: one by one
  while (!remove_folders(path_) && core::now() < limit) {
    for (const pid_t member : members(path_)) ::kill(member, SIGKILL);
    std::this_thread::sleep_for(kCgroupLook);
  }
}

}  // namespace scaletrain::launcher
