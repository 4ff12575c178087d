// Profiler: records a rank's steps with Kineto, as torch.profiler does. The trace has each
// operation of LibTorch, and on a GPU each kernel and copy. Open it in ui.perfetto.dev or
// chrome://tracing.
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

class Profile {
 public:
  // Profiles a rank: the trace goes to `file`, a readable summary to `say`; does nothing without
  // `asked`. Only one at a time in a process.
  Profile(const std::optional<recipe::Profile>& asked, at::Device device,
          std::filesystem::path file, std::function<void(const std::string& text)> say);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Call before each step, on the thread that runs it.
  void step_begins();
  // Call after each step. After the last profiled step it writes the file; `say` gets its path and,
  // on a GPU, the slowest kernels. A failed write is a warning.
  void step_ended();
  // After training: writes the steps recorded so far, or warns that none were reached.
  void finish();

 private:
  void write();

  const std::optional<recipe::Profile> asked_;
  const at::Device device_;
  const std::filesystem::path file_;
  const std::function<void(const std::string& text)> say_;
  std::int64_t begun_ = 0, ended_ = 0;  // steps of this process
  bool is_recording_ = false;
};

}  // namespace scaletrain::train
