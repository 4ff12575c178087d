#include "launcher/devices/device_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/devices/device_sampler.h"
#include "launcher/devices/device_warnings.h"
#include "launcher/platform/gpus.h"
#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/core/thread_limit.h"
#include "lib/observe/devices/device_files.h"

namespace scaletrain::launcher {

struct DeviceWatchInputs {
  std::filesystem::path file{};  // "": nothing is written
  int node = 0, ranks = 0;
  std::vector<WorkerProcess> workers{};
  std::uint64_t changes = 0;  // of `file`
  bool ends = false;
};

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kSampleEvery{1};
constexpr std::chrono::seconds kDriverPatience{3};  // for a driver that does not answer

std::vector<Gpu> gpus_of(const DeviceWatch::Node& node) {
  if (!node.has_gpus) return {};
  std::vector<Gpu> gpus = visible_gpus_here();
  if (node.most_gpus > 0 && gpus.size() > static_cast<std::size_t>(node.most_gpus)) {
    gpus.resize(static_cast<std::size_t>(node.most_gpus));
  }
  return gpus;
}

// Samples into the file of an attempt.
class Recorder {
 public:
  explicit Recorder(const DeviceWatch::Node& node) : sampler_(node.run, gpus_of(node), node.root) {}

  void look(const DeviceWatchInputs& inputs) {
    const bool changed = inputs.file != file_;
    if (!changed || log_) record(inputs);  // also the last one of a file
    if (!changed) return;
    if (log_) log_->flush();
    log_.reset();
    file_ = inputs.file;
    if (file_.empty()) return;
    sampler_.begin_file();
    log_.emplace(file_);
    record(inputs);
  }

 private:
  void record(const DeviceWatchInputs& inputs) {
    const core::SteadyTime now = core::now();
    const double seconds =
        last_ ? std::chrono::duration<double>(now - *std::exchange(last_, now)).count() : 0;
    last_ = now;
    observe::DeviceSample sample = sampler_.sample(seconds, inputs.workers);
    if (!inputs.file.empty()) {
      node_ = inputs.node;
      ranks_ = inputs.ranks;
    }
    sample.node = node_;
    sample.ranks = ranks_;
    if (!log_) return;
    log_->append(sample);
    for (const std::string& warning : warnings_.look(sample)) core::warn("{}", warning);
  }

  DeviceSampler sampler_;
  DeviceWarnings warnings_;
  std::optional<observe::DeviceLog> log_;
  fs::path file_;
  int node_ = 0, ranks_ = 0;
  std::optional<core::SteadyTime> last_;
};

}  // namespace

fs::path system_root() {
  const char* const root = std::getenv("SCALETRAIN_SYSTEM_ROOT");
  return root != nullptr && *root != '\0' ? root : "/";
}

struct DeviceWatch::Shared {
  std::mutex mutex;
  std::condition_variable changed, answered;
  DeviceWatchInputs inputs;
  std::uint64_t seen = 0;  // changes that the thread has handled
  bool ended = false;

  void change(const std::function<void(DeviceWatchInputs&)>& how) {
    {
      const std::lock_guard lock(mutex);
      how(inputs);
      ++inputs.changes;
    }
    changed.notify_one();
  }
};

DeviceWatch::DeviceWatch(const Node& node) : shared_(std::make_shared<Shared>()) {
  sigset_t all, before;  // signals are for the launcher's main thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  // Detached: a driver that hangs must not keep the launcher from ending its job.
  try {
    std::thread([shared = shared_, node] { run(shared, node); }).detach();
  } catch (const std::system_error&) {
    shared_->ended = true;
    core::warn("{}; devices are not sampled", core::kNoThread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DeviceWatch::~DeviceWatch() {
  shared_->change([](DeviceWatchInputs& inputs) { inputs.ends = true; });
  std::unique_lock lock(shared_->mutex);
  shared_->answered.wait_for(lock, kDriverPatience, [this] { return shared_->ended; });
}

void DeviceWatch::run(const std::shared_ptr<Shared>& shared, const Node& node) {
  std::optional<Recorder> recorder(std::in_place, node);
  std::unique_lock lock(shared->mutex);
  while (!shared->inputs.ends) {
    const DeviceWatchInputs inputs = shared->inputs;
    lock.unlock();
    recorder->look(inputs);
    lock.lock();
    shared->seen = inputs.changes;
    shared->answered.notify_all();
    shared->changed.wait_for(lock, kSampleEvery, [&] {
      return shared->inputs.ends || shared->inputs.changes != shared->seen;
    });
  }
  lock.unlock();
  recorder.reset();
  lock.lock();
  shared->ended = true;
  shared->answered.notify_all();
}

void DeviceWatch::begin_attempt(const fs::path& attempt_logs, int node, int ranks) {
  shared_->change([&](DeviceWatchInputs& inputs) {
    inputs.file = observe::device_file(attempt_logs, node);
    inputs.node = node;
    inputs.ranks = ranks;
    inputs.workers.clear();
  });
}

void DeviceWatch::worker_started(int rank, pid_t pid) {
  const std::lock_guard lock(shared_->mutex);
  shared_->inputs.workers.push_back({.rank = rank, .pid = pid});
}

void DeviceWatch::end_attempt() {
  shared_->change([](DeviceWatchInputs& inputs) { inputs.file.clear(); });
  std::unique_lock lock(shared_->mutex);
  const std::uint64_t change = shared_->inputs.changes;
  shared_->answered.wait_for(lock, kDriverPatience,
                             [&] { return shared_->ended || shared_->seen >= change; });
}

}  // namespace scaletrain::launcher
