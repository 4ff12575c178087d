// Compares the surroundings of a finished run with those of now: data files, program, host, git
// repository and environment variables.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/jobs/data_files.h"
#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

struct RunDifference {
  std::string name;        // "data train /data/a.tar", "cpu", "variable OMP_NUM_THREADS"
  std::string then, now;   // the values as text; "-": there is none
  bool is_certain = true;  // false: a file was written again, and its contents may be the same
};

// Compares two lists of data files. `sha256_then` returns the recorded SHA-256 of a file, "" if it
// is not known; a file of the same size that was written since is hashed and compared with it.
std::vector<RunDifference> data_differences(
    const std::vector<DataFile>& then, const std::vector<DataFile>& now,
    const std::function<std::string(const DataFile&)>& sha256_then);

// Compares the fields `names` ("versions/torch") of two environment.json.
std::vector<RunDifference> environment_differences(const RunJson& then, const RunJson& now,
                                                   const std::vector<std::string>& names);

// Returns the recorded variables that change how LibTorch, NCCL and Gloo compute or communicate,
// as names and values. CUDA_VISIBLE_DEVICES is left out: it selects devices.
std::vector<std::pair<std::string, std::string>> computing_variables(const RunJson& environment);

}  // namespace scaletrain::launcher
