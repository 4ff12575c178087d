#include "lib/nn/experts/divided_experts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

namespace scaletrain::nn {
namespace {

using at::Tensor;
using Counts = units::ExpertCut::Counts;

// Rows of each rank, of counts for each rank and there for each expert.
Counts sums_by_rank(const Counts& counts, std::size_t ranks) {
  const std::size_t experts = counts.size() / ranks;
  Counts sums(ranks, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) sums[i / experts] += counts[i];
  return sums;
}

// How many rows this rank's experts get, of each rank.
Counts counts_for_this_rank(const Counts& counts, const units::ExpertCut& cut) {
  const Tensor here =
      cut.exchange_counts(at::tensor(counts, at::kLong).view({cut.ranks, -1})).contiguous();
  const auto* const values = here.const_data_ptr<std::int64_t>();
  return {values, values + here.numel()};
}

}  // namespace

Tensor answers_of_ranks(const Tensor& rows, const Counts& counts, const units::ExpertCut& cut,
                        const Answer& answer) {
  const auto ranks = static_cast<std::size_t>(cut.ranks);
  const std::size_t experts = counts.size() / ranks;  // experts on this rank
  const Counts here = counts_for_this_rank(counts, cut);
  const Counts send = sums_by_rank(counts, ranks), receive = sums_by_rank(here, ranks);

  // Received rows are ordered by rank, then by expert; each expert gets the rows of all ranks
  // together.
  std::vector<Tensor> parts = cut.move(rows, send, receive).split_with_sizes(here);
  for (std::size_t expert = 0; expert < experts; ++expert) {
    std::vector<Tensor> taken;
    Counts sizes;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      taken.push_back(parts[rank * experts + expert]);
      sizes.push_back(here[rank * experts + expert]);
    }
    const std::vector<Tensor> answers =
        answer(static_cast<std::size_t>(cut.rank) * experts + expert, at::cat(taken))
            .split_with_sizes(sizes);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      parts[rank * experts + expert] = answers[rank];
    }
  }
  return cut.move(at::cat(parts), receive, send);
}

}  // namespace scaletrain::nn
