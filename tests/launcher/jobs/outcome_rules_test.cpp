#include "launcher/jobs/outcome_rules.h"

#include <doctest/doctest.h>

#include <csignal>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

const RecipeRules kRecipeRules;
const ProgramRules kProgramRules;

Failure failed_with(int code, int signal = 0) {
  return {.status = {.code = code, .signal = signal}};
}

WorkerEnd ended_with(int code, int signal = 0, bool was_stopped = true, bool was_killed = false) {
  return {.pid = 1,
          .status = {.code = code, .signal = signal},
          .was_stopped = was_stopped,
          .was_killed = was_killed};
}

TEST_CASE("a recipe is restarted after failures that a restart can fix") {
  for (const int code : {1, 74, 75}) CHECK(kRecipeRules.worth_restart(failed_with(code)));
  for (const int code : {2, 65, 71, 76, 130})
    CHECK_FALSE(kRecipeRules.worth_restart(failed_with(code)));
  CHECK(kRecipeRules.worth_restart(failed_with(0, SIGKILL)));
  for (const int code : {1, 2, 65}) CHECK(kProgramRules.worth_restart(failed_with(code)));
}

TEST_CASE("a recipe's exit status is its worker's, a program's is 1 but where it hung") {
  CHECK(kRecipeRules.exit_status(failed_with(65)) == 65);
  CHECK(kRecipeRules.exit_status(failed_with(0, SIGKILL)) == 137);
  CHECK(kProgramRules.exit_status(failed_with(65)) == 1);
  CHECK(kProgramRules.exit_status(failed_with(0, SIGKILL)) == 1);
  Failure hung = failed_with(75);
  hung.hang = "rank 1 hangs";
  CHECK(kProgramRules.exit_status(hung) == 75);
}

TEST_CASE("a recipe's worker that was asked to stop failed where it did neither save nor leave") {
  for (const int code : {0, 75, 130})
    CHECK_FALSE(kRecipeRules.failed_while_stopping(ended_with(code)));
  for (const int code : {1, 65, 74}) CHECK(kRecipeRules.failed_while_stopping(ended_with(code)));
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    CHECK_FALSE(kRecipeRules.failed_while_stopping(ended_with(0, signal)));
  }
  CHECK(kRecipeRules.failed_while_stopping(ended_with(0, SIGSEGV)));
  CHECK(kRecipeRules.failed_while_stopping(ended_with(0, SIGKILL)));
  CHECK_FALSE(kRecipeRules.failed_while_stopping(ended_with(0, SIGKILL, true, true)));  // by us
}

TEST_CASE("a program failed before it was asked to stop, or was killed by others") {
  CHECK(kProgramRules.failed_while_stopping(ended_with(3, 0, false)));
  CHECK_FALSE(kProgramRules.failed_while_stopping(ended_with(3)));
  CHECK(kProgramRules.failed_while_stopping(ended_with(0, SIGKILL)));
  CHECK_FALSE(kProgramRules.failed_while_stopping(ended_with(0, SIGKILL, true, true)));
}

TEST_CASE("while workers are being stopped only their own failures count") {
  std::vector<WorkerPlan> plans(2);
  plans[1].rank = plans[1].local_rank = 1;
  GroupEnd end;
  end.workers = {ended_with(75), ended_with(65)};
  end.workers[1].rank = end.workers[1].local_rank = 1;
  CHECK(failure_of(kRecipeRules, end, plans).has_value());
  end.stop_signal = SIGTERM;
  CHECK(failure_of(kRecipeRules, end, plans).value().rank == 1);
  end.workers.pop_back();
  CHECK_FALSE(failure_of(kRecipeRules, end, plans).has_value());
  end.stop_signal = 0;
  end.nodes_stopped = true;  // by another node
  CHECK_FALSE(failure_of(kRecipeRules, end, plans).has_value());
  end.nodes_stopped = false;
  end.trouble = "the lease is lost";
  CHECK_FALSE(failure_of(kRecipeRules, end, plans).has_value());
}

TEST_CASE("all have succeeded where each has and nobody stopped them") {
  GroupEnd end;
  end.workers = {ended_with(0)};
  CHECK(all_succeeded(end, 1));
  CHECK_FALSE(all_succeeded(end, 2));
  end.stop_signal = SIGTERM;
  CHECK_FALSE(all_succeeded(end, 1));
  end.stop_signal = 0;
  end.trouble = "the lease is lost";
  CHECK_FALSE(all_succeeded(end, 1));
  end.trouble.clear();
  end.workers[0].status.code = 1;
  CHECK_FALSE(all_succeeded(end, 1));
  end.workers[0].was_tolerated = true;
  CHECK(all_succeeded(end, 1));
}

}  // namespace
}  // namespace scaletrain::launcher
