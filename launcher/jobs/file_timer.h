// torchrun's file timer (TORCHELASTIC_ENABLE_FILE_TIMER=1): a process of a worker's that enters
// something which may hang says through a named pipe by when it will be out, and is killed where it
// is not. The other end is torch.distributed.elastic.timer.FileTimerClient.
//
// One JSON object a line: {"pid", "scope_id", "expiration_time": Unix seconds, below 0 releases the
// timer, "signal": what the process is sent, 0 or below for none}.
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
  // How often to look, at least.
  static constexpr std::chrono::milliseconds kEvery{100};

  // Makes the pipe, in the place of what is there. Throws core::StorageError.
  explicit FileTimer(std::filesystem::path pipe);
  ~FileTimer();  // removes it
  FileTimer(const FileTimer&) = delete;
  FileTimer& operator=(const FileTimer&) = delete;

  const std::filesystem::path& pipe() const { return pipe_; }

  // Takes what has come and kills whose timer ran out. A process that is of no session of the
  // `running` workers is left alone, and its timers are forgotten.
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

// Null unless TORCHELASTIC_ENABLE_FILE_TIMER is 1. The pipe is TORCHELASTIC_TIMER_FILE, else one
// among the temporary files with `name` in its own.
std::unique_ptr<FileTimer> file_timer_of_environment(const std::string& name);

}  // namespace scaletrain::launcher
