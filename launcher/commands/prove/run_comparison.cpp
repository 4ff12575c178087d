#include "launcher/commands/prove/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace scaletrain::launcher {
namespace {

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "not finite";
}

double relative_difference(const std::optional<double>& a, const std::optional<double>& b) {
  if (a == b) return 0;
  if (!a || !b) return std::numeric_limits<double>::infinity();
  return std::abs(*a - *b) / std::max(std::abs(*a), std::abs(*b));
}

Parting number_parting(std::int64_t step, const char* field, const std::optional<double>& first,
                       const std::optional<double>& second) {
  return {.step = step, .field = field, .first = number_text(first), .second = number_text(second)};
}

std::optional<Parting> step_parting(const ProvenStep& a, const ProvenStep& b, double tolerance) {
  if (a.step != b.step) {
    return Parting{.step = std::min(a.step, b.step),
                   .field = "step",
                   .first = fmt::format("{}", a.step),
                   .second = fmt::format("{}", b.step)};
  }
  if (a.order_digest != b.order_digest) {
    return Parting{
        .step = a.step, .field = "order_digest", .first = a.order_digest, .second = b.order_digest};
  }
  if (relative_difference(a.loss, b.loss) > tolerance) {
    return number_parting(a.step, "loss", a.loss, b.loss);
  }
  if (tolerance == 0 && a.grad_norm != b.grad_norm) {
    return number_parting(a.step, "grad_norm", a.grad_norm, b.grad_norm);
  }
  return std::nullopt;
}

// Parting of runs whose common steps agree: one is longer, or the final weights differ.
std::optional<Parting> end_parting(const ProvenRun& first, const ProvenRun& second,
                                   double tolerance) {
  const std::size_t count = std::min(first.steps.size(), second.steps.size());
  if (first.steps.size() != second.steps.size()) {
    const bool is_first_longer = first.steps.size() > count;
    const std::int64_t step = (is_first_longer ? first : second).steps[count].step;
    const std::string shown = fmt::format("{}", step);
    return Parting{.step = step,
                   .field = "step",
                   .first = is_first_longer ? shown : "none",
                   .second = is_first_longer ? "none" : shown};
  }
  if (tolerance == 0 && first.model_digest != second.model_digest) {
    return Parting{.step = count == 0 ? 0 : first.steps.back().step,
                   .field = "model_digest",
                   .first = first.model_digest,
                   .second = second.model_digest};
  }
  return std::nullopt;
}

bool has_same_bits(const ProvenRun& first, const ProvenRun& second) {
  return first.model_digest == second.model_digest &&
         std::equal(
             first.steps.begin(), first.steps.end(), second.steps.begin(), second.steps.end(),
             [](const ProvenStep& a, const ProvenStep& b) { return !step_parting(a, b, 0); });
}

}  // namespace

ProvenRun proven_run(const RunMetrics& metrics, std::string model_digest) {
  ProvenRun run{.steps = {}, .model_digest = std::move(model_digest)};
  for (const auto& [step, record] : metrics.trained) {
    run.steps.push_back({.step = step,
                         .loss = number_of(record, "loss"),
                         .grad_norm = number_of(record, "grad_norm"),
                         .order_digest = string_of(record, "order_digest")});
  }
  return run;
}

RunVerdict compare_runs(const ProvenRun& first, const ProvenRun& second, double tolerance) {
  RunVerdict verdict;
  const std::size_t count = std::min(first.steps.size(), second.steps.size());
  for (std::size_t i = 0; i < count && !verdict.parting; ++i) {
    const ProvenStep &a = first.steps[i], &b = second.steps[i];
    verdict.parting = step_parting(a, b, tolerance);
    if (verdict.parting) break;
    verdict.relative = std::max(verdict.relative, relative_difference(a.loss, b.loss));
  }
  if (!verdict.parting) verdict.parting = end_parting(first, second, tolerance);
  if (verdict.parting) {
    verdict.equality = RunEquality::kDifferent;
  } else if (!has_same_bits(first, second)) {
    verdict.equality = RunEquality::kWithin;
  }
  return verdict;
}

}  // namespace scaletrain::launcher
