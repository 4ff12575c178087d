// Any program as a job, as torchrun runs it: its variables, log layout, error files and exit code.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/job.h"

namespace scaletrain::launcher {

class ForeignJob : public Job {
 public:
  // `log_dir`: where both streams are copied, in torchrun's layout; "": nowhere, and error files
  // lie in a temporary folder. Throws core::UsageError where the program does not exist and
  // core::StorageError where the folder cannot be made.
  ForeignJob(std::vector<std::string> program, Placement placement, const std::string& log_dir);
  // Removes the temporary folder, unless a failed worker left its cause there.
  ~ForeignJob() override;

  std::vector<WorkerPlan> plan_attempt(int restart, int max_restarts,
                                       const StoreSocket& store) override;
  GroupOptions group_options(const StoreSocket& store) override;
  int succeeded() override { return 0; }
  bool worth_restart(const Failure&) const override { return true; }
  int exit_status(const Failure&) const override { return 1; }
  int stopped_status(const GroupEnd&) const override { return 1; }
  bool failed_while_stopping(const WorkerEnd& end) const override { return !end.was_stopped; }
  std::string give_up(const Failure& failure) override;

 private:
  std::vector<std::string> program_;
  Placement placement_;
  bool keep_logs_;
  bool keep_folder_;
  std::filesystem::path folder_;  // <log_dir>/<run_id>_<random8>
};

}  // namespace scaletrain::launcher
