// Profiler: records a rank's steps with Kineto, as torch.profiler does. The trace has each
// operation of LibTorch, on a GPU each kernel and copy, and our own spans on the same clock: steps,
// rows of the time ledger, collectives, checkpoint writes (lib/observe/trace/span_events.h). Open
// it in ui.perfetto.dev or chrome://tracing.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lib/recipe/sections/profile.h"

namespace scaletrain::train {

// Keeps Kineto from logging on a CPU that it found no GPU. Sets an environment variable: call it
// before other threads start.
void silence_profiler(at::Device device);

// The rank as a trace names it ("distributedInfo"), which HolisticTraceAnalysis reads.
struct TracedRank {
  int rank = 0, world_size = 1;
  std::string backend = {};  // "gloo", "shm" or "nccl"; "" with one rank
};

class Profile {
 public:
  // Profiles a rank: traces go to `folder`, a readable summary to `say`. The recipe's trace `asked`
  // is rank-R.json, one that ask() begins is step-S-rank-R.json with S the first step in it. Only
  // one Profile at a time in a process.
  Profile(const std::optional<recipe::Profile>& asked, at::Device device, TracedRank rank,
          std::filesystem::path folder, std::function<void(const std::string& text)> say);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Traces the next `steps` steps, after a trace that is being recorded. All ranks call it between
  // the same two steps.
  void ask(std::int64_t steps) { requested_ = steps; }
  // True if no trace is being recorded or requested.
  bool is_idle() const { return !is_recording_ && requested_ == 0; }

  // Call before step `step`, counted from 1, on the thread that runs it.
  void step_begins(std::int64_t step);
  // Call after each step. After the last profiled step it writes the file; `say` gets its path and,
  // on a GPU, the slowest kernels. A failed write is a warning.
  void step_ended();
  // After training: writes the steps recorded so far, or warns that none were reached.
  void finish();

 private:
  void start(std::int64_t steps, const std::string& file_name);
  void end_step_span();
  void write();

  const std::optional<recipe::Profile> asked_;
  const at::Device device_;
  const TracedRank rank_;
  const std::filesystem::path folder_;
  const std::function<void(const std::string& text)> say_;
  std::int64_t begun_ = 0;      // steps of this process
  std::int64_t requested_ = 0;  // steps that ask() has requested
  bool has_begun_ = false;      // the recipe's trace
  std::filesystem::path file_;  // the trace that is being recorded,
  std::int64_t steps_ = 0,
               ended_ = 0;  // number of steps of the trace; number of those that have ended
  std::int64_t step_ = 0, step_begin_ns_ = 0;  // the current step
  bool is_recording_ = false;
};

}  // namespace scaletrain::train
