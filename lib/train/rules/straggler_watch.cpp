#include "lib/train/rules/straggler_watch.h"

#include "lib/dist/send.h"
#include "lib/train/rules/ledger_of_ranks.h"

namespace scaletrain::train {
namespace {

constexpr std::size_t kFields = 3;

}  // namespace

std::optional<SlowRanks> StragglerWatch::step(std::int64_t step) {
  if (group_.world_size() == 1 || ++steps_ % observe::Stragglers::kWindowSteps != 0) return {};
  core::TimeLedger* const ledger = core::TimeLedger::of_thread();
  const core::RowSeconds before = seen_;
  if (ledger != nullptr) seen_ = ledger->total();
  core::RowSeconds rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = (seen_[i] - before[i]) / observe::Stragglers::kWindowSteps;
  }
  const observe::OwnTimes times = own_times(rows);
  std::vector<double> all(static_cast<std::size_t>(group_.world_size()) * kFields);
  double* const own = all.data() + static_cast<std::size_t>(group_.rank()) * kFields;
  own[0] = times.data;
  own[1] = times.compute;
  own[2] = times.checkpoint;
  const at::Tensor sums = dist::send(all, group_.device());
  group_.all_reduce_sum(sums, "times of ranks").wait();
  times_.push(sums, step);
  return slow_among(times_.next());
}

std::optional<SlowRanks> StragglerWatch::slow_among(const std::optional<Times::Outcome>& times) {
  if (!times) return std::nullopt;
  std::vector<observe::OwnTimes> ranks;
  ranks.reserve(times->sums.size() / kFields);
  for (std::size_t at = 0; at < times->sums.size(); at += kFields) {
    const double* const value = times->sums.data() + at;
    ranks.push_back({.data = value[0], .compute = value[1], .checkpoint = value[2]});
  }
  return SlowRanks{.step = times->facts, .ranks = stragglers_.add(ranks)};
}

}  // namespace scaletrain::train
