// NCCL's flight recorder in the workers of a recipe on GPUs: the last collectives of each rank,
// with their states, written to files when the job hangs. torch's fr_trace reads them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace scaletrain::launcher {

class NcclRecorder {
 public:
  // Records for the workers `ranks` of one attempt, to `folder`/nccl_trace_RANK.
  NcclRecorder(const std::filesystem::path& folder, std::vector<int> ranks);
  ~NcclRecorder();  // removes the request pipes
  NcclRecorder(const NcclRecorder&) = delete;
  NcclRecorder& operator=(const NcclRecorder&) = delete;

  // Returns environment variables that enable it in a worker, except those that the user has set.
  std::map<std::string, std::string> variables() const;

  // Asks the workers that have an NCCL process group to write their traces, and waits a few seconds
  // at most.
  void record() const;

 private:
  std::filesystem::path pipe_folder_;  // private to this launcher
  std::string files_, pipes_;          // prefixes; the rank's number follows
  std::vector<int> ranks_;
};

}  // namespace scaletrain::launcher
