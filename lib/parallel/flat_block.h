// A flat block of parameters that is sharded over the ranks of the shard axis
// (lib/parallel/sharded.h): its memory and its gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/dist/group.h"
#include "lib/parallel/unit_flats.h"
#include "lib/units/host_update.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

struct FlatBlock {
  // Shard of a parameter that this rank updates; `begin`: its offset in FlatBlock::own.
  struct Owned {
    at::Tensor tensor;
    std::int64_t begin;
  };

  // Makes the parameters views of `whole` without changing their values.
  FlatBlock(FlatPlan given, const std::vector<units::NamedParameter>& all, int ranks,
            at::Device device);

  // Makes the parameters bf16, in the memory that they had before.
  void narrow();
  // Shard of `rank`, as a view of `whole`.
  at::Tensor shard_of(int rank) const;

  // Adds the gradient of the parameter at `slot` to `sums` and drops the gradient.
  void add_gradient(std::size_t slot);
  // True if the parameter at `slot` has a gradient that add_gradient() has not taken yet.
  bool has_gradient(std::size_t slot) const { return parameters[slot].grad().defined(); }
  // Returns `sums` with zeros for parameters that have no gradient.
  at::Tensor& complete_sums();
  // Frees the memory of `sums`.
  void drop_sums();
  // Drops all gradients.
  void zero_grad();

  FlatPlan plan;
  std::size_t number = 0;  // index of this block on the rank
  std::vector<FlatRange> gaps;
  std::vector<at::Tensor> parameters;  // the model's parameters by slot, views of `whole`
  at::Tensor whole;                    // [part * ranks], unsharded; has no memory while resharded
  at::Tensor own;                      // [part], local shard; a view of `whole` if that stays
  at::TensorOptions gradients;         // options of the gradients, on the device
  std::vector<Owned> owned;
  std::shared_ptr<units::HostUpdate> update;  // last CPU update of `own`; null: not offloaded
  std::size_t users = 0;                      // unsharded units that use this block
  dist::Pending gathering;                    // last all-gather

  at::Tensor sums;                // gradients in the layout of `whole`; undefined: none yet
  std::vector<bool> has_sum;      // slots whose gradient is in `sums`
  at::Tensor gradient;            // reduced gradient of `own`; undefined: none in this step
  std::size_t units_to_come = 0;  // units whose backward is still to come
  bool is_reduced = false;        // reduce-scattered in this backward
  bool is_with_copies = false;    // the all-reduce of `gradient` over replicas has started
};

// Peak memory of the gradients of `blocks`, which are all blocks of a rank.
core::GradientPeak gradient_peak_of(const std::vector<std::unique_ptr<FlatBlock>>& blocks,
                                    const core::ShardedGradients& options);

}  // namespace scaletrain::parallel
