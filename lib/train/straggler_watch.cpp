#include "lib/train/straggler_watch.h"

#include <ATen/ops/zeros.h>

namespace scaletrain::train {
namespace {

constexpr std::int64_t kFields = 3;

}  // namespace

std::vector<observe::Straggler> StragglerWatch::step() {
  if (group_.world_size() == 1 || ++steps_ % observe::Stragglers::kWindowSteps != 0) return {};
  const auto times = beat_.take_times();
  const auto a_step = [&](core::Phase phase) {
    return times[static_cast<std::size_t>(phase)] / observe::Stragglers::kWindowSteps;
  };
  at::Tensor all = at::zeros({group_.world_size() * kFields}, at::kDouble);
  double* const own = all.mutable_data_ptr<double>() + group_.rank() * kFields;
  own[0] = a_step(core::Phase::kData);
  own[1] = a_step(core::Phase::kCompute);
  own[2] = a_step(core::Phase::kSaving);
  all = all.to(group_.device());
  group_.all_reduce_sum(all, "times of ranks").wait();
  const at::Tensor host = group_.to_host(all);
  const auto* value = host.const_data_ptr<double>();
  std::vector<observe::OwnTimes> ranks;
  ranks.reserve(static_cast<std::size_t>(group_.world_size()));
  for (int rank = 0; rank < group_.world_size(); ++rank, value += kFields) {
    ranks.push_back({.data = value[0], .compute = value[1], .checkpoint = value[2]});
  }
  return stragglers_.add(ranks);
}

}  // namespace scaletrain::train
