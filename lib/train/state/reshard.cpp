#include "lib/train/state/reshard.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::train {
namespace {

using units::Shard;
using units::Shards;

struct Description {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> shape;
};

std::string describe(const std::string& name, const Shard& shard) {
  return fmt::format("{} {} {} {}\n", static_cast<int>(shard.tensor.scalar_type()),
                     shard.shape.size(), fmt::join(shard.shape, " "), name);
}

// Returns the tensors of which any rank has several slices.
std::map<std::string, Description> sliced_anywhere(dist::Group& group, const Shards& shards) {
  std::map<std::string, Description> all;
  for (int rank = 0; rank < group.world_size(); ++rank) {
    std::string text;  // tensors that earlier ranks have not named
    for (const auto& [name, shard] : shards) {
      if (rank != group.rank() || all.contains(name) || shard.slices.size() < 2) continue;
      text += describe(name, shard);
    }
    std::istringstream lines(group.broadcast_text(text, rank, "tensors with several slices"));
    int dtype = 0;
    for (std::size_t dimensions = 0; lines >> dtype >> dimensions;) {
      Description description{.dtype = static_cast<at::ScalarType>(dtype),
                              .shape = std::vector<std::int64_t>(dimensions)};
      for (std::int64_t& size : description.shape) lines >> size;
      std::string name;
      std::getline(lines >> std::ws, name);
      all.emplace(name, std::move(description));
    }
  }
  return all;
}

// Returns the full tensor on the group's device. Sums bytes: each element is set by its owner
// alone, and 0 + -0 has other bits than -0. `own` may be null.
at::Tensor sum_of_owned(dist::Group& group, const Description& tensor, const Shard* own) {
  const at::Tensor full = at::zeros(tensor.shape, at::TensorOptions(tensor.dtype));
  if (own != nullptr && own->owned && own->is_here()) copy_to_full(*own, full);
  at::Tensor message = full.to(group.device());
  group.all_reduce_sum(message.view({-1}).view(at::kByte), "shards for a checkpoint").wait();
  return message;
}

}  // namespace

Shards gather_full(dist::Group& group, const Shards& shards) {
  const at::NoGradGuard no_grad;
  Shards result = shards;
  for (auto& [name, shard] : result) {
    if (shard.is_full()) continue;
    const Description tensor{.dtype = shard.tensor.scalar_type(), .shape = shard.shape};
    shard = units::full_shard(sum_of_owned(group, tensor, &shard).cpu());
  }
  return result;
}

Shards merge_slices(dist::Group& group, const Shards& shards) {
  const at::NoGradGuard no_grad;
  Shards result = shards;
  for (const auto& [name, tensor] : sliced_anywhere(group, shards)) {
    const auto own = shards.find(name);
    const at::Tensor full =
        sum_of_owned(group, tensor, own == shards.end() ? nullptr : &own->second);
    const std::int64_t count = full.numel();
    const auto border = [&](std::int64_t rank) { return count * rank / group.world_size(); };
    const std::int64_t first = border(group.rank()), last = border(group.rank() + 1);
    Shard& range = result[name] = range_of(units::full_shard(full), first, last);
    range.tensor = range.tensor.clone().cpu();
  }
  return result;
}

}  // namespace scaletrain::train
