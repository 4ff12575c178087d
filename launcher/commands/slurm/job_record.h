// RUN/slurm.json: the job of Slurm's that was submitted for a run.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::launcher {

struct JobRecord {
  std::string job{};  // "123", or "123_4" of an array
  std::string log{};  // the batch script's output, absolute
};

// Makes the run's folder where it is absent. Throws core::StorageError.
void write_job_record(const std::filesystem::path& run, const JobRecord& record);

// Throws core::UsageError where the run has none, or a damaged one.
JobRecord read_job_record(const std::filesystem::path& run);

// How the run's job stands in Slurm's queue: "PENDING", "RUNNING", ...; of an array's, as that task
// does. "" where it has ended or Slurm has forgotten it, none was submitted, or squeue is not on
// PATH. Throws core::UsageError where squeue gives no answer.
std::string state_in_slurm(const std::filesystem::path& run);

// The file that sbatch makes of --output's pattern: %A or %j the job, %a the array's task, %x the
// job's name, %% a percent sign. In an array `job` is "123_4" and there is no %j. Throws
// core::UsageError for another pattern of Slurm's.
std::string log_path(const std::string& pattern, const std::string& job, const std::string& name);

}  // namespace scaletrain::launcher
