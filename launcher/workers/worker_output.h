// Output of the workers of one attempt that passes through the launcher: their relays, and the two
// consoles that these share.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/output/output_relay.h"
#include "launcher/workers/worker_plan.h"
#include "lib/core/clock.h"
#include "lib/core/console.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class WorkerOutput {
 public:
  // How long a console may take nothing while workers are being stopped: one of them may wait for
  // room for its last words.
  static constexpr std::chrono::milliseconds kConsolePatience{1000};

  // Onto the descriptors of this process; tests give others.
  explicit WorkerOutput(int output = STDOUT_FILENO, int error = STDERR_FILENO)
      : output_{core::Console(output)}, error_{core::Console(error)} {}
  WorkerOutput(const WorkerOutput&) = delete;  // the relays point to the consoles
  WorkerOutput& operator=(const WorkerOutput&) = delete;

  // Makes the relays that `plan` asks for. `request` names the worker's ends of their pipes, which
  // are the result: keep them until the worker has started.
  std::vector<core::Descriptor> attach(const WorkerPlan& plan, core::SpawnRequest& request);

  // Appends one entry for each relay.
  void watch(std::vector<pollfd>& watched) const;
  // `watched` are the entries that watch() appended, after poll.
  void advance(std::span<const pollfd> watched);

  // Parts of lines that have waited long enough are shown; late_at: when the next has.
  void show_late(core::SteadyTime now);
  std::optional<core::SteadyTime> late_at() const;

  // The workers are being stopped: from now on a console that somebody waits for and that takes
  // nothing for kConsolePatience is given up, by look(), which is to be called at next_look().
  void begin_patience(core::SteadyTime now);
  std::optional<core::SteadyTime> next_look() const { return next_look_; }
  void look(core::SteadyTime now);

  // Passes on what has arrived so far; the workers have ended.
  void finish();
  // Last lines of a worker's standard error; empty if it was not relayed.
  std::vector<std::string> last_lines(int local_rank) const;

 private:
  struct Relay {
    int local_rank;
    bool is_error;
    OutputRelay relay;
  };
  struct Shared {
    core::Console console;
    std::size_t taken = 0;  // at the last look
  };

  void add(const WorkerPlan& plan, bool is_error, core::SpawnRequest& request,
           std::vector<core::Descriptor>& child_ends);
  bool is_awaited(const core::Console& console) const;

  Shared output_, error_;
  std::vector<Relay> relays_;
  bool shares_error_stream_ = false;  // with a worker that writes there past the launcher
  std::optional<core::SteadyTime> next_look_;
};

}  // namespace scaletrain::launcher
