// A trace of what a rank computes in some steps: each operation of LibTorch, and on a GPU each
// kernel and copy, by Kineto as torch.profiler has it. The file is for ui.perfetto.dev or
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

// On a CPU Kineto does not say that it found no GPU. While no other thread reads the environment.
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

  // Before each step, by the thread that makes it.
  void step_begins();
  // After each. After the last profiled step it writes the file; `say` gets its path and, on a GPU,
  // the slowest kernels. A failed write is a warning.
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
