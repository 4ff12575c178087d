// failure.json: the failure that ended a job, in a run's folder or a program's --log-dir.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/workers/failure.h"

namespace scaletrain::launcher {

// nullopt is null in the file: unknown or absent.
struct FailureFile {
  double time = 0;  // Unix seconds
  int attempt = 0;
  std::string host{};
  std::optional<int> node{};
  std::optional<std::string> device{};
  int rank = 0;
  int local_rank = 0;
  std::int64_t pid = 0;
  int exit_code = 1;
  std::optional<std::string> signal{};  // "SIGKILL"
  std::string cause{};                  // cause of the failure or hang
  std::optional<std::int64_t> step{};
  std::vector<std::string> hang{};  // details of the hang; empty: nothing hung
  std::string log{};
  std::vector<std::string> last_lines{};
};

FailureFile failure_file(const Failure& failure, int attempt);

// The file's text.
std::string to_json(const FailureFile& file);

// Writes FOLDER/failure.json; a failure to do so is a warning.
void write_failure(const std::filesystem::path& folder, const Failure& failure, int attempt);

// Reads FOLDER/failure.json; nullopt if it does not exist or is not readable.
std::optional<FailureFile> read_failure(const std::filesystem::path& folder);

}  // namespace scaletrain::launcher
