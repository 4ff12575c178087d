// torchrun's file timer (TORCHELASTIC_ENABLE_FILE_TIMER=1): before an operation that may hang, a
// worker's process writes its deadline to a named pipe, and is killed if it misses it. The client
// is torch.distributed.elastic.timer.FileTimerClient.
//
// Messages are JSON objects, one a line: {"pid", "scope_id", "expiration_time": Unix seconds, below
// 0 releases the timer, "signal": signal to send, 0 or below for none}.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/workers/hang_watch.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class FileTimer {
 public:
  // Longest time between two calls of look().
  static constexpr std::chrono::milliseconds kEvery{100};

  // Creates the pipe and replaces an existing file. Throws core::StorageError.
  explicit FileTimer(std::filesystem::path pipe);
  ~FileTimer();  // removes the pipe
  FileTimer(const FileTimer&) = delete;
  FileTimer& operator=(const FileTimer&) = delete;

  const std::filesystem::path& pipe() const { return pipe_; }

  // Reads messages and kills processes whose timer has expired. Ignores processes outside the
  // sessions of the `running` workers and forgets their timers.
  void look(const std::vector<RunningWorker>& running);

 private:
  struct Timer {
    core::SteadyTime end;
    int signal = 0;
  };
  void take_requests();
  void take_request(const std::string& line);
  void end_expired(const RunningWorker& worker, pid_t pid);

  std::filesystem::path pipe_;
  core::Descriptor requests_;
  std::string partial_;                                    // an incomplete line
  std::map<std::pair<pid_t, std::string>, Timer> timers_;  // keyed by process and scope
};

// Returns null unless TORCHELASTIC_ENABLE_FILE_TIMER is 1. The pipe is TORCHELASTIC_TIMER_FILE,
// else a temporary file with `name` in its name.
std::unique_ptr<FileTimer> file_timer_of_environment(const std::string& name);

}  // namespace scaletrain::launcher
