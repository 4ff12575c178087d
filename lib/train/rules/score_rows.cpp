#include "lib/train/rules/score_rows.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace scaletrain::train {
namespace {

constexpr const char* kName = "evaluation scores";

// Rows of each rank.
std::vector<std::int64_t> counts_of_ranks(dist::Group& group, std::int64_t own) {
  const at::Tensor counts =
      at::zeros({group.world_size()}, at::TensorOptions(at::kLong).device(group.device()));
  counts[group.rank()].fill_(own);
  group.all_reduce_sum(counts, kName).wait();
  const at::Tensor host = group.to_host(counts);
  const auto* const values = host.const_data_ptr<std::int64_t>();
  return {values, values + host.numel()};
}

// `own` of each rank, one after the other, on the host. `counts` are their sizes.
at::Tensor all_of(dist::Group& group, const at::Tensor& own,
                  const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> shape = own.sizes().vec();
  std::vector<at::Tensor> blocks;
  blocks.reserve(counts.size());
  for (int rank = 0; rank < group.world_size(); ++rank) {
    shape[0] = counts[static_cast<std::size_t>(rank)];
    const at::Tensor block = rank == group.rank() ? own : at::empty(shape, own.options());
    if (shape[0] > 0) group.broadcast(block, rank, kName).wait();
    blocks.push_back(group.to_host(block));
  }
  return at::cat(blocks);
}

}  // namespace

void ScoreRows::add(const at::Tensor& rows, std::int64_t position) {
  rows_.push_back(rows);
  positions_.push_back(at::arange(position, position + rows.size(0), at::kLong));
}

at::Tensor ScoreRows::gather(dist::Group& group) const {
  if (columns_ == 0) return {};
  std::vector<at::Tensor> rows{
      at::empty({0, columns_}, at::TensorOptions(at::kFloat).device(group.device()))};
  std::vector<at::Tensor> positions{at::empty({0}, at::kLong)};
  rows.insert(rows.end(), rows_.begin(), rows_.end());
  positions.insert(positions.end(), positions_.begin(), positions_.end());
  const at::Tensor own = at::cat(rows), places = at::cat(positions).to(group.device());
  const std::vector<std::int64_t> counts = counts_of_ranks(group, own.size(0));
  return all_of(group, own, counts).index_select(0, all_of(group, places, counts).argsort());
}

}  // namespace scaletrain::train
