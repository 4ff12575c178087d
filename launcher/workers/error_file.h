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

// Returns nullopt if there is no file or it is not in torchrun's format: a worker may die while
// writing it, and any program may write anything there.
std::optional<ErrorFile> read_error_file(const std::filesystem::path& path);

// Reads the same from the worker's memfd (lib/core/job/worker_env.h).
std::optional<ErrorFile> read_verdict(int fd);

// Copies the error file of the first failed worker to the place where a parent launcher reads it,
// with torchrun's "errorCode"; warns if that is not possible.
void copy_error_file(const std::filesystem::path& from, const std::filesystem::path& to, int code);

}  // namespace scaletrain::launcher
