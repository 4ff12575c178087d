// RUN/slurm.json: the Slurm job that was submitted for a run.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::launcher {

struct JobRecord {
  std::string job{};  // "123", or "123_4" of an array
  std::string log{};  // the batch script's output, absolute
};

// Creates the run's folder if it does not exist. Throws core::StorageError.
void write_job_record(const std::filesystem::path& run, const JobRecord& record);

// Reads the record. Throws core::UsageError if the run has none or it is damaged.
JobRecord read_job_record(const std::filesystem::path& run);

// Returns the state of the run's job in Slurm's queue, "PENDING", "RUNNING", ...; for an array,
// that of the run's task. "" if the job has ended or is unknown to Slurm, if none was submitted, or
// if squeue is not on PATH. Throws core::UsageError if squeue does not answer.
std::string state_in_slurm(const std::filesystem::path& run);

// Returns the file for sbatch's --output pattern: %A or %j is the job, %a the array task, %x the
// job name, %% a percent sign. In an array `job` is "123_4" and there is no %j. Throws
// core::UsageError for other patterns.
std::string log_path(const std::string& pattern, const std::string& job, const std::string& name);

}  // namespace scaletrain::launcher
