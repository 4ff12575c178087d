#include "launcher/jobs/job.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A job whose one worker is a shell's line, another in each attempt; it keeps what it was asked.
class ScriptJob : public AttemptMaker, public JobEnding {
 public:
  explicit ScriptJob(std::vector<std::string> scripts) : scripts_(std::move(scripts)) {}

  Job job() { return {.facts = facts, .rules = rules, .attempts = *this, .ending = *this}; }

  std::string make_plan(const Attempt& attempt) override {
    return "plan " + std::to_string(attempt.restart);
  }
  AttemptPlan plan_attempt(const Attempt& attempt, const StoreSocket& store) override {
    CHECK(attempt.plan == "plan " + std::to_string(attempt.restart));
    CHECK(attempt.first == (attempt.restart == 0));
    CHECK(store.fd.get() >= 0);
    CHECK(attempt.placement.master_port == store.port);
    AttemptPlan plan;
    plan.workers.resize(1);
    plan.workers[0].process.arguments = {"/bin/sh", "-c", scripts_.at(attempts++)};
    return plan;
  }
  void attempt_ended(const GroupEnd& end, const std::vector<WorkerPlan>& plans) override {
    CHECK(end.workers.size() == plans.size());
    if (++ended == signalled_after) CHECK(raise(SIGTERM) == 0);
  }
  int succeeded() override {
    ending += "succeeded";
    return 0;
  }
  int stopped(const GroupEnd& end) override {
    ending += "stopped by " + core::signal_name(end.stop_signal);
    return 75;
  }
  std::string give_up(const Failure& failure) override {
    ending += "gave up: " + core::to_text(failure.status);
    return "";
  }

  JobFacts facts{.name = "job"};
  RecipeRules rules;
  std::size_t attempts = 0, ended = 0, signalled_after = 0;
  std::string ending{};

 private:
  std::vector<std::string> scripts_;
};

constexpr RestartLimits kTwice{.most = 2, .per_hour = 0, .delay = milliseconds(0)};

int run(ScriptJob& job, const RestartLimits& limits = kTwice) {
  return run_job(job.job(), Placement{}, limits, seconds(60));
}

TEST_CASE("a job that succeeds has one attempt") {
  ScriptJob job({"exit 0"});
  CHECK(run(job) == 0);
  CHECK(job.attempts == 1);
  CHECK(job.ended == 1);
  CHECK(job.ending == "succeeded");
}

TEST_CASE("a job is started again after a failure that is worth it, until it succeeds") {
  ScriptJob job({"exit 74", "kill -KILL $$", "exit 0"});
  CHECK(run(job) == 0);
  CHECK(job.attempts == 3);
  CHECK(job.ended == 3);
  CHECK(job.ending == "succeeded");
}

TEST_CASE("a job is given up where no restart is left") {
  ScriptJob job({"exit 74", "exit 74", "exit 75"});
  CHECK(run(job) == 75);
  CHECK(job.attempts == 3);
  CHECK(job.ending == "gave up: exit code 75");
}

TEST_CASE("a job is given up where another try could not help") {
  ScriptJob job({"exit 65"});
  CHECK(run(job) == 65);
  CHECK(job.attempts == 1);
  CHECK(job.ending == "gave up: exit code 65");
}

TEST_CASE("a signal stops the workers that run") {
  ScriptJob job({"kill -TERM $PPID; exec sleep 1000"});
  CHECK(run(job) == 75);
  CHECK(job.attempts == 1);
  CHECK(job.ending == "stopped by SIGTERM");
}

TEST_CASE("a signal ends the wait between two attempts") {
  ScriptJob job({"exit 74", "exit 74"});
  job.signalled_after = 2;
  // The first restart is at once, the second would be after a minute.
  CHECK(run(job, {.most = 5, .per_hour = 0, .delay = seconds(60)}) == 75);
  CHECK(job.attempts == 2);
  CHECK(job.ending == "stopped by SIGTERM");
}

}  // namespace
}  // namespace scaletrain::launcher
