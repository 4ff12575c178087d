// Runs the trials of `scaletrain prove` through `scaletrain launch`, each once.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/prove/proofs.h"
#include "launcher/commands/prove/run_comparison.h"
#include "launcher/platform/scratch_folder.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

struct TrialResult {
  ProvenRun run;
  std::filesystem::path folder;  // run folder with its last checkpoint
  std::string failure;           // reason why it did not end as planned; "": it did
};

class TrialRunner {
 public:
  // Runs are made in `scratch`, which must outlive this object.
  explicit TrialRunner(ScratchFolder& scratch) : scratch_(scratch) {}

  // Trains the trial. Prints the end of its log if a launch fails. Throws core::Error if a signal
  // stopped this command, once the ranks have ended.
  TrialResult run(const Trial& trial);

  // Returns the result of an equal trial that ran before; otherwise runs it and keeps its folder.
  const TrialResult& reference(const Trial& trial);

 private:
  // Sets SCALETRAIN_FAULT to `fault`; nullopt leaves the value of this process.
  core::ExitStatus launch(const std::vector<std::string>& words,
                          const std::optional<std::string>& fault,
                          const std::filesystem::path& log);
  // Returns the reason why the trial did not end as planned; "": it did.
  std::string train(const Trial& trial, const std::filesystem::path& folder);

  ScratchFolder& scratch_;
  int count_ = 0;
  std::map<std::string, TrialResult> references_;  // by recipe and number of ranks
};

}  // namespace scaletrain::launcher
