#include "lib/train/integrity/first_finding.h"

#include <ATen/ops/full.h>

namespace scaletrain::train {

std::string first_finding(dist::Group& group, const std::string& own, const char* name) {
  const int none = group.world_size();
  // The maximum of -rank is that of the lowest rank.
  const at::Tensor rank = at::full({1}, own.empty() ? -none : -group.rank(),
                                   at::TensorOptions(at::kLong).device(group.device()));
  group.all_reduce_max(rank, name).wait();
  const auto first = static_cast<int>(-group.to_host(rank).item<std::int64_t>());
  if (first == none) return "";
  return group.broadcast_text(group.rank() == first ? own : "", first, name);
}

}  // namespace scaletrain::train
