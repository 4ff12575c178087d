#include "launcher/commands/prove/run_comparison.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

namespace scaletrain::launcher {
namespace {

constexpr std::int64_t kLastStep = 5;

ProvenRun proven_five_steps() {
  ProvenRun run{.steps = {}, .model_digest = "abc"};
  for (std::int64_t step = 1; step <= kLastStep; ++step) {
    run.steps.push_back({.step = step,
                         .loss = 10.0 / static_cast<double>(step),
                         .grad_norm = 1.0,
                         .order_digest = "00ff"});
  }
  return run;
}

struct PartingCase {
  const char* title;
  std::function<void(ProvenRun&)> change;
  std::int64_t step;
  const char* field;
};

}  // namespace

TEST_CASE("runs with the same bits are equal under any tolerance") {
  for (const double tolerance : {0.0, 1e-6}) {
    const RunVerdict verdict = compare_runs(proven_five_steps(), proven_five_steps(), tolerance);
    CHECK(verdict.equality == RunEquality::kEqual);
    CHECK(verdict.relative == 0);
    CHECK(!verdict.parting);
  }
}

TEST_CASE("runs that part are found at the step and field at which they do") {
  const std::vector<PartingCase> cases{
      {"another loss", [](ProvenRun& run) { run.steps[2].loss = 3.4; }, 3, "loss"},
      {"a loss that is not finite", [](ProvenRun& run) { run.steps[3].loss.reset(); }, 4, "loss"},
      {"another gradient norm", [](ProvenRun& run) { run.steps[1].grad_norm = 1.5; }, 2,
       "grad_norm"},
      {"other samples", [](ProvenRun& run) { run.steps[4].order_digest = "0100"; }, 5,
       "order_digest"},
      {"a step left out", [](ProvenRun& run) { run.steps.erase(run.steps.begin() + 1); }, 2,
       "step"},
      {"an end that comes early", [](ProvenRun& run) { run.steps.pop_back(); }, 5, "step"},
      {"other weights", [](ProvenRun& run) { run.model_digest = "abd"; }, 5, "model_digest"},
      {"two differences, of which the first counts",
       [](ProvenRun& run) {
         run.steps[3].order_digest = "0100";
         run.steps[1].loss = 0;
       },
       2, "loss"}};
  for (const PartingCase& one : cases) {
    CAPTURE(one.title);
    ProvenRun other = proven_five_steps();
    one.change(other);
    for (const bool is_exchanged : {false, true}) {
      const RunVerdict verdict = is_exchanged ? compare_runs(other, proven_five_steps(), 0)
                                              : compare_runs(proven_five_steps(), other, 0);
      CHECK(verdict.equality == RunEquality::kDifferent);
      REQUIRE(verdict.parting);
      CHECK(verdict.parting->step == one.step);
      CHECK(verdict.parting->field == one.field);
    }
  }
}

TEST_CASE("a tolerance covers rounding of losses, gradient norms and weights") {
  ProvenRun other = proven_five_steps();
  other.steps[1].loss = 5.0 * (1 + 4e-7);
  other.steps[2].grad_norm = 1.0 + 1e-6;
  other.model_digest = "abd";
  const RunVerdict verdict = compare_runs(proven_five_steps(), other, 1e-6);
  CHECK(verdict.equality == RunEquality::kWithin);
  CHECK(verdict.relative == doctest::Approx(4e-7));
  CHECK(compare_runs(proven_five_steps(), other, 1e-7).equality == RunEquality::kDifferent);
}

TEST_CASE("a tolerance does not cover another data order, lost steps or a skipped step") {
  for (const auto& change : std::vector<std::function<void(ProvenRun&)>>{
           [](ProvenRun& run) { run.steps[0].order_digest = "0100"; },
           [](ProvenRun& run) { run.steps.pop_back(); },
           [](ProvenRun& run) { run.steps[2].loss.reset(); }}) {
    ProvenRun other = proven_five_steps();
    change(other);
    CHECK(compare_runs(proven_five_steps(), other, 0.5).equality == RunEquality::kDifferent);
  }
}

TEST_CASE("a parting has both values as they are logged") {
  ProvenRun other = proven_five_steps();
  other.steps[1].loss.reset();
  const RunVerdict verdict = compare_runs(proven_five_steps(), other, 0);
  REQUIRE(verdict.parting);
  CHECK(verdict.parting->first == "5");
  CHECK(verdict.parting->second == "not finite");
}

TEST_CASE("the steps of a run are its training records") {
  RunMetrics metrics;
  metrics.trained[1] = {{"loss", 2.5}, {"grad_norm", 0.5}, {"order_digest", "0a"}};
  metrics.trained[2] = {{"loss", nullptr}, {"grad_norm", nullptr}, {"order_digest", "0b"}};
  const ProvenRun run = proven_run(metrics, "abc");
  REQUIRE(run.steps.size() == 2);
  CHECK(run.model_digest == "abc");
  CHECK(run.steps[0].loss == 2.5);
  CHECK(run.steps[0].order_digest == "0a");
  CHECK(run.steps[1].step == 2);
  CHECK(!run.steps[1].loss);
}

}  // namespace scaletrain::launcher
