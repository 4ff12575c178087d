// The jobs of a queue, one file each: FOLDER/jobs/0001.json, replaced atomically at every change,
// so that the queue continues after it was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

struct QueuedJob {
  enum class State {
    kWaiting,  // to be started, or continued if `starts` > 0
    kRunning,
    kDone,
    kFailed,
  };
  int number = 0;                  // order in which jobs are started, from 1
  std::string name{};              // the run's name
  std::string recipe{};            // file of the recipe, absolute
  std::vector<std::string> set{};  // overrides of recipe keys
  // The keys that distinguish this run from the others of a sweep, with their values.
  std::vector<std::pair<std::string, std::string>> values{};
  std::string output{};  // the run's folder; unique
  State state = State::kWaiting;
  int starts = 0;
  int exit_code = 0;      // the last start's exit code
  std::string devices{};  // CUDA_VISIBLE_DEVICES of the last start; "": CPUs
};

const char* name_of(QueuedJob::State state);

std::string to_json(const QueuedJob& job);
// Parses a job file. Throws core::DataError naming `file` if the text is invalid.
QueuedJob parse_job(const std::string& text, const std::string& file);

// Returns the jobs of the folder by number; {} if the folder does not exist.
std::vector<QueuedJob> load_jobs(const std::filesystem::path& folder);
// Writes the job's file.
void save_job(const std::filesystem::path& folder, const QueuedJob& job);

// Appends `more` to `jobs` and numbers them; a job whose output exists already is left out and
// keeps its state. Throws core::UsageError if two of `more` have the same output, or if a job with
// that output has another recipe or other overrides.
void add_jobs(std::vector<QueuedJob>& jobs, std::vector<QueuedJob> more);

}  // namespace scaletrain::launcher
