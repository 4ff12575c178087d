#include "lib/train/loop/anomalies.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/train/rules/anomaly.h"
#include "lib/train/state/go_back.h"

namespace scaletrain::train {
namespace {

constexpr int kMaxSkippedInARow = 10;  // then training has diverged
constexpr const char* kLessDivergence =
    "lower the learning rate, lengthen the warmup or clip the gradients; the checkpoints from "
    "before are kept";

std::string kind_of_anomaly(const StepResult& result) {
  if (!result.finite) return "not finite";
  if (result.loss_spike && result.norm_spike) return "loss and gradient norm spike";
  return result.loss_spike ? "loss spike" : "gradient norm spike";
}

std::string cause_of(const StepResult& result) {
  if (!result.finite) {
    return fmt::format("not finite: loss {}, gradient norm {}", result.loss, result.grad_norm);
  }
  std::string text;
  const auto add = [&](bool holds, const char* name, double value, double bound) {
    if (!holds) return;
    text += fmt::format("{}{} {:.6g} is above the bound of {:.6g}", text.empty() ? "" : ", ", name,
                        value, bound);
  };
  add(result.loss_spike, "loss", result.loss, result.bounds->loss);
  add(result.norm_spike, "gradient norm", result.grad_norm, result.bounds->grad_norm);
  return text;
}

// Returns the rank whose evidence explains the step: the first with a unit that is not finite,
// otherwise that with the largest loss. Collective.
int rank_of_cause(dist::Group& group, const Evidence& own) {
  const at::Tensor values = at::zeros({group.world_size(), 2}, at::kDouble);
  auto of_ranks = values.accessor<double, 2>();
  const double loss = std::isfinite(own.loss) ? own.loss : std::numeric_limits<double>::max();
  of_ranks[group.rank()][0] = own.unit.empty() ? 0 : 1;
  of_ranks[group.rank()][1] = loss;
  const at::Tensor sums = values.to(group.device());
  group.all_reduce_sum(sums, "cause of an anomaly").wait();
  const at::Tensor all = group.to_host(sums);
  const auto found = all.accessor<double, 2>();
  int largest = 0;
  for (int rank = 0; rank < group.world_size(); ++rank) {
    if (found[rank][0] != 0) return rank;
    if (found[rank][1] > found[largest][1]) largest = rank;
  }
  return largest;
}

}  // namespace

Anomalies::Anomalies(Run& run, Reporter& reporter, StepRunner& steps)
    : run_(run),
      reporter_(reporter),
      steps_(steps),
      saturation_(run.recipe.anomaly
                      ? saturation_steps(run.recipe.anomaly->saturation, run.length.total_steps)
                      : 0) {}

SpikeBounds Anomalies::bounds() const {
  return run_.recipe.anomaly ? next_bounds(*run_.recipe.anomaly, run_.state) : SpikeBounds();
}

void Anomalies::count(const StepResult& result) {
  const std::int64_t step = result.facts.step + 1;
  if (!result.taken) ++run_.state.skipped_steps;
  if (run_.recipe.anomaly) {
    const recipe::Anomaly& anomaly = *run_.recipe.anomaly;
    const bool counts = result.is_anomalous() && !result.taken;
    count_step(anomaly, {step, result.loss, result.grad_norm, counts}, run_.state);
    const std::string warning = saturation_.step(step, result.loss, result.grad_norm);
    if (!warning.empty()) reporter_.saturated(step, warning);
    if (result.is_anomalous()) return count_anomalous(anomaly, result);
    if (!result.taken) reporter_.skipped(result);
    return;
  }
  if (result.finite) {
    skipped_in_a_row_ = 0;
    return;
  }
  reporter_.skipped(result);
  if (result.overflowed() || ++skipped_in_a_row_ < kMaxSkippedInARow) return;
  throw core::DivergedError(
      fmt::format("step {}", step),
      fmt::format("loss or gradients were not finite in {} steps in a row", kMaxSkippedInARow),
      kLessDivergence);
}

void Anomalies::count_anomalous(const recipe::Anomaly& anomaly, const StepResult& result) {
  const AnomalyReport report = report_of(anomaly, result);
  reporter_.anomaly(report);
  if (result.taken) return;  // clipped
  const std::string end = anomaly_end(anomaly, run_.state, report.step);
  if (!end.empty()) {
    throw core::DivergedError(fmt::format("step {}", report.step),
                              fmt::format("{}; {}", end, report.cause), kLessDivergence);
  }
  rolls_back_ = anomaly.policy == "rollback";
}

AnomalyReport Anomalies::report_of(const recipe::Anomaly& anomaly, const StepResult& result) {
  run_.engine->settle();  // it runs a forward that is not the next step's
  const Evidence own = steps_.examine(result);
  dist::Group& group = *run_.group;
  const int rank = rank_of_cause(group, own);
  const nlohmann::json found{{"unit", own.unit}, {"keys", own.keys}, {"samples", own.samples}};
  const auto of_rank = nlohmann::json::parse(group.broadcast_text(
      group.rank() == rank ? core::json_text(found) : "", rank, "evidence of an anomaly"));
  AnomalyReport report{.step = result.facts.step + 1,
                       .kind = kind_of_anomaly(result),
                       .cause = cause_of(result),
                       .policy = anomaly.policy,
                       .taken = result.taken,
                       .rank = rank,
                       .unit = of_rank.at("unit"),
                       .keys = of_rank.at("keys"),
                       .samples = of_rank.at("samples")};
  if (!result.finite && report.unit.empty() && !run_.pipeline) report.unit = "backward";
  return report;
}

bool Anomalies::roll_back(Saves& saves) {
  rolls_back_ = false;
  const format::TrainState now = run_.state;
  const std::optional<std::filesystem::path> checkpoint = saves.wait_for_newest();
  if (!checkpoint) {
    reporter_.note(fmt::format(
        "step {}: there is no checkpoint to go back to; only the step is left out", now.step));
    return false;
  }
  go_back(run_, *checkpoint);
  const format::TrainState then = run_.state;
  run_.state = rolled_back(now, then);
  run_.learner.optimizer->resume_at(run_.state.step);
  reporter_.rolled_back(then.step);
  return true;
}

}  // namespace scaletrain::train
