// Error file in which a failed worker reports its cause (torchrun's TORCHELASTIC_ERROR_FILE).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace scaletrain::launcher {

struct ErrorFile {
  std::string message;
  double time = 0;             // Unix seconds; 0: not known
  bool whole_seconds = false;  // `time` was cut to whole seconds
  std::int64_t step = -1;      // -1: not known
};

// nullopt where there is none or it is not readable as torchrun's format: a worker may have died
// while it wrote it, and any program may write anything there.
std::optional<ErrorFile> read_error_file(const std::filesystem::path& path);

// Reads the same from the memfd that the worker was given for it (lib/core/job/worker_env.h).
std::optional<ErrorFile> read_verdict(int fd);

// Copies the error file of the worker that failed first to where a launcher above reads it, with
// torchrun's "errorCode" in it; warns where that is not possible.
void copy_error_file(const std::filesystem::path& from, const std::filesystem::path& to, int code);

}  // namespace scaletrain::launcher
