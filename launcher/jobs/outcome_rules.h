// What the ends of workers mean for a job: whether one failed, whether trying again may help, what
// to exit with. Nothing is done here.
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

  // Whether trying again may help.
  virtual bool worth_restart(const Failure& failure) const = 0;
  // What to exit with where it is not tried again.
  virtual int exit_status(const Failure& failure) const = 0;
  // Whether a worker that did not succeed failed in its own way although a stop was asked for.
  virtual bool failed_while_stopping(const WorkerEnd& end) const = 0;
};

// Our own workers say by their exit code what happened (docs/reference/exit-codes.md).
class RecipeRules : public OutcomeRules {
 public:
  bool worth_restart(const Failure& failure) const override;
  int exit_status(const Failure& failure) const override;
  bool failed_while_stopping(const WorkerEnd& end) const override;
};

// Of other programs nothing is known; the launcher exits with 1, as torchrun does.
class ProgramRules : public OutcomeRules {
 public:
  bool worth_restart(const Failure&) const override { return true; }
  int exit_status(const Failure& failure) const override;
  bool failed_while_stopping(const WorkerEnd& end) const override;
};

// Whether our own workers know the signal as a request to save and leave (lib/core/signals.h).
bool is_known_to_workers(int signal);

// The failure that `end` shows: where the workers were stopped (by a signal, another node or the
// launcher itself) only that of one that failed in its own way.
std::optional<Failure> failure_of(const OutcomeRules& rules, const GroupEnd& end,
                                  const std::vector<WorkerPlan>& plans);

// Whether all of `workers` workers succeeded or were outlived, and nobody stopped them.
bool all_succeeded(const GroupEnd& end, std::size_t workers);

}  // namespace scaletrain::launcher
