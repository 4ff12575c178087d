// Opens the runs of a command line: local folders, or copies in an object store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/platform/scratch_folder.h"
#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// Keeps the files of remote runs (s3://..., gs://..., https://...) for its lifetime.
class OpenRuns {
 public:
  // Reads the runs. The files of a remote one are fetched by scaletrain-data: all but its
  // checkpoints and logs. Throws core::UsageError for a folder without a run, core::Error of
  // scaletrain-data's status.
  explicit OpenRuns(const std::vector<std::string>& paths);

  const std::vector<RunRecord>& all() const { return runs_; }

 private:
  std::unique_ptr<ScratchFolder> scratch_;  // nullptr: every run is local
  std::vector<RunRecord> runs_;
};

}  // namespace scaletrain::launcher
