#include "launcher/jobs/file_timer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "launcher/platform/temporary_folder.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kLongestRequest = 64 << 10;
constexpr double kLongestTimerS = 1e9;

}  // namespace

FileTimer::FileTimer(std::filesystem::path pipe) : pipe_(std::move(pipe)) {
  std::error_code ignored;
  std::filesystem::remove(pipe_, ignored);
  constexpr const char* kRemedy = "name another file with TORCHELASTIC_TIMER_FILE";
  if (mkfifo(pipe_.c_str(), 0600) != 0) {
    throw core::StorageError(pipe_.string(), core::errno_text(errno), kRemedy);
  }
  requests_ = core::Descriptor(open(pipe_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!requests_) throw core::StorageError(pipe_.string(), core::errno_text(errno), kRemedy);
}

FileTimer::~FileTimer() {
  std::error_code ignored;
  std::filesystem::remove(pipe_, ignored);
}

void FileTimer::look(const std::vector<RunningWorker>& running) {
  take_requests();
  std::set<pid_t> pids;
  for (const auto& [key, timer] : timers_) pids.insert(key.first);
  for (const pid_t pid : pids) {
    const pid_t session = getsid(pid);
    const auto worker = std::find_if(running.begin(), running.end(),
                                     [&](const RunningWorker& one) { return one.pid == session; });
    if (worker != running.end()) {
      end_expired(*worker, pid);
    } else {
      std::erase_if(timers_, [&](const auto& entry) { return entry.first.first == pid; });
    }
  }
}

void FileTimer::take_requests() {
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = read(requests_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // no writer, or nothing to read
    partial_.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = partial_.find('\n')) != std::string::npos;) {
      take_request(partial_.substr(0, end));
      partial_.erase(0, end + 1);
    }
    if (partial_.size() > kLongestRequest) partial_.clear();
  }
}

void FileTimer::take_request(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return;
  const auto number = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number() ? found->get<double>() : 0;
  };
  const auto scope = json.find("scope_id");
  const double pid = number("pid"), end = number("expiration_time"), signal = number("signal");
  if (scope == json.end() || !scope->is_string() || !(pid > 1 && pid < 1 << 30)) return;
  const std::pair<pid_t, std::string> key(static_cast<pid_t>(pid), scope->get<std::string>());
  if (end < 0) {
    timers_.erase(key);
    return;
  }
  // Steady from here on: a clock that is set does no harm to a timer that runs.
  const double left_s = std::clamp(end - core::unix_time(), 0.0, kLongestTimerS);
  timers_[key] = {.end = core::now() + std::chrono::duration_cast<core::SteadyTime::duration>(
                                           std::chrono::duration<double>(left_s)),
                  .signal = signal >= 1 && signal <= SIGRTMAX ? static_cast<int>(signal) : 0};
}

// As torchrun: of several timers that ran out the earliest with a signal counts, and all of the
// process are done with.
void FileTimer::end_expired(const RunningWorker& worker, pid_t pid) {
  const core::SteadyTime now = core::now();
  const std::string* scope = nullptr;
  const Timer* first = nullptr;
  for (const auto& [key, timer] : timers_) {
    if (key.first != pid || timer.end > now) continue;
    const bool is_earlier = first == nullptr || (first->signal == 0 && timer.signal != 0) ||
                            (timer.signal != 0 && timer.end < first->end);
    if (!is_earlier) continue;
    first = &timer;
    scope = &key.second;
  }
  if (first == nullptr) return;
  core::log("rank {}: its timer \"{}\" ran out{}", worker.rank, core::printable(*scope),
            first->signal == 0 ? "" : ": " + core::signal_name(first->signal));
  if (first->signal != 0) kill(pid, first->signal);
  std::erase_if(timers_, [&](const auto& entry) { return entry.first.first == pid; });
}

std::unique_ptr<FileTimer> file_timer_of_environment(const std::string& name) {
  const char* const wanted = std::getenv("TORCHELASTIC_ENABLE_FILE_TIMER");
  if (wanted == nullptr || std::string_view(wanted) != "1") return nullptr;
  const char* const file = std::getenv("TORCHELASTIC_TIMER_FILE");
  if (file != nullptr && *file != '\0') return std::make_unique<FileTimer>(file);
  return std::make_unique<FileTimer>(temporary_folder() / ("watchdog_timer_" + name));
}

}  // namespace scaletrain::launcher
