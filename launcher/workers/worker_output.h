// Relays the output of one attempt's workers to the two consoles that they share.
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
  // Longest time that a console may accept nothing while workers are being stopped: one of them may
  // wait to write its last output.
  static constexpr std::chrono::milliseconds kConsolePatience{1000};

  // Writes to the descriptors of this process; tests pass others.
  explicit WorkerOutput(int output = STDOUT_FILENO, int error = STDERR_FILENO)
      : output_{core::Console(output)}, error_{core::Console(error)} {}
  WorkerOutput(const WorkerOutput&) = delete;  // the relays point to the consoles
  WorkerOutput& operator=(const WorkerOutput&) = delete;

  // Creates the relays of `plan`. `request` refers to the worker's ends of their pipes, which are
  // returned: keep them until the worker has started.
  std::vector<core::Descriptor> attach(const WorkerPlan& plan, core::SpawnRequest& request);

  // Appends one entry for each relay.
  void watch(std::vector<pollfd>& watched) const;
  // `watched`: the entries that watch() appended, after poll.
  void advance(std::span<const pollfd> watched);

  // Shows incomplete lines that have waited long enough; late_at() returns when the next one is
  // due.
  void show_late(core::SteadyTime now);
  std::optional<core::SteadyTime> late_at() const;

  // Call when the workers are being stopped. From then on look(), called at next_look(), abandons a
  // console that accepts nothing for kConsolePatience.
  void begin_patience(core::SteadyTime now);
  std::optional<core::SteadyTime> next_look() const { return next_look_; }
  void look(core::SteadyTime now);

  // Passes on everything that has arrived, after the workers have ended.
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
    std::size_t taken = 0;  // amount at the last look()
  };

  void add(const WorkerPlan& plan, bool is_error, core::SpawnRequest& request,
           std::vector<core::Descriptor>& child_ends);
  bool is_awaited(const core::Console& console) const;

  Shared output_, error_;
  std::vector<Relay> relays_;
  bool shares_error_stream_ = false;  // with a worker that writes to it directly
  std::optional<core::SteadyTime> next_look_;
};

}  // namespace scaletrain::launcher
