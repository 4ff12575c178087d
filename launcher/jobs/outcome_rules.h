// Interprets the ends of workers for a job: whether one failed, whether a restart may help, and
// the exit status. Has no side effects.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "launcher/workers/failure.h"
#include "launcher/workers/worker_group.h"

namespace scaletrain::launcher {

class OutcomeRules {
 public:
  virtual ~OutcomeRules() = default;

  // True if a restart may help.
  virtual bool worth_restart(const Failure& failure) const = 0;
  // Exit status if the job is not restarted.
  virtual int exit_status(const Failure& failure) const = 0;
  // True if a worker failed for a reason of its own although a stop was requested.
  virtual bool failed_while_stopping(const WorkerEnd& end) const = 0;
};

// Rules for scaletrain's workers: their exit codes have meanings (docs/reference/exit-codes.md).
class RecipeRules : public OutcomeRules {
 public:
  bool worth_restart(const Failure& failure) const override;
  int exit_status(const Failure& failure) const override;
  bool failed_while_stopping(const WorkerEnd& end) const override;
};

// Rules for other programs, whose exit codes have no known meaning: exits with 1 like torchrun.
class ProgramRules : public OutcomeRules {
 public:
  bool worth_restart(const Failure&) const override { return true; }
  int exit_status(const Failure& failure) const override;
  bool failed_while_stopping(const WorkerEnd& end) const override;
};

// True if scaletrain's workers treat the signal as a request to save and exit
// (lib/core/process/signals.h).
bool is_known_to_workers(int signal);

// Returns the failure in `end`. If the workers were stopped (by a signal, another node or the
// launcher itself), only a worker that failed for a reason of its own counts.
std::optional<Failure> failure_of(const OutcomeRules& rules, const GroupEnd& end,
                                  const std::vector<WorkerPlan>& plans);

// True if all `workers` workers succeeded or their loss was tolerated, and they were not stopped.
bool all_succeeded(const GroupEnd& end, std::size_t workers);

}  // namespace scaletrain::launcher
