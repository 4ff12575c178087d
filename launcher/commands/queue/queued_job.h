// The jobs of a queue, one file each: FOLDER/jobs/0001.json, replaced whole at every change, so
// that a queue that is killed finds them as they were.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

struct QueuedJob {
  enum class State {
    kWaiting,  // to be started, or to be continued where `starts` > 0
    kRunning,
    kDone,
    kFailed,
  };
  int number = 0;                  // order in which jobs are started, from 1
  std::string name{};              // the run's name
  std::string recipe{};            // its file, absolute
  std::vector<std::string> set{};  // overrides of its keys
  // The keys that distinguish this run from the others of a sweep, with their values.
  std::vector<std::pair<std::string, std::string>> values{};
  std::string output{};  // the run's folder: no two jobs have the same
  State state = State::kWaiting;
  int starts = 0;
  int exit_code = 0;      // the last start's exit code
  std::string devices{};  // CUDA_VISIBLE_DEVICES of the last start; "": CPUs
};

const char* name_of(QueuedJob::State state);

std::string to_json(const QueuedJob& job);
// Throws core::DataError naming `file` where the text is no such job.
QueuedJob parse_job(const std::string& text, const std::string& file);

// The jobs of the folder by number; none where there is no such folder.
std::vector<QueuedJob> load_jobs(const std::filesystem::path& folder);
// Writes the job's file.
void save_job(const std::filesystem::path& folder, const QueuedJob& job);

// Adds `more` behind `jobs` and numbers them; one whose output is there already is left out: it
// keeps its state. Throws core::UsageError where two of `more` have the same output, or where a job
// of that output is there with another recipe or other overrides.
void add_jobs(std::vector<QueuedJob>& jobs, std::vector<QueuedJob> more);

}  // namespace scaletrain::launcher
