// One block of parameters that the ranks of a shard axis have a part of each (lib/parallel/
// sharded.h): its memory, and the gradients that come for it.
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

struct ShardBlock {
  // A part of a parameter that this rank updates, and where it lies in the block's part.
  struct Owned {
    at::Tensor tensor;
    std::int64_t begin;
  };

  // The parameters become views of `whole`, with the same values.
  ShardBlock(FlatPlan given, const std::vector<units::NamedParameter>& all, int ranks,
             at::Device device);

  // From now on the parameters are bf16, in the same memory as before.
  void narrow();
  // Of `whole` the part of `rank`.
  at::Tensor place_of(int rank) const;

  // Adds the gradient that the parameter of `slot` has to `sums`, and takes it away.
  void add_gradient(std::size_t slot);
  // Whether a parameter has a gradient that was not added yet.
  bool has_gradient(std::size_t slot) const { return parameters[slot].grad().defined(); }
  // `sums` without anything undefined; zeros where no gradient has come.
  at::Tensor& complete_sums();
  // Gives the memory of `sums` back.
  void drop_sums();
  // Takes all gradients away.
  void zero_grad();

  FlatPlan plan;
  std::size_t number = 0;  // of the rank's blocks
  std::vector<FlatRange> gaps;
  std::vector<at::Tensor> parameters;  // by slot: the model's, views of `whole`
  at::Tensor whole;                    // [part * ranks]; without memory while it is not there
  at::Tensor own;                      // [part], what lies here; of `whole` where that stays
  at::TensorOptions gradients;         // of its parameters, on the device
  std::vector<Owned> owned;
  std::shared_ptr<units::HostUpdate> update;  // of `own`; null where it does not lie on the host
  std::size_t users = 0;                      // units that are there and use it
  dist::Pending gathering;                    // the last one

  at::Tensor sums;                // of gradients, like `whole`; undefined: none has come
  std::vector<bool> has_sum;      // by slot
  at::Tensor gradient;            // of `own`; undefined: none yet in this step
  std::size_t units_to_come = 0;  // that backward is not through with
  bool is_reduced = false;        // in this backward
  bool is_with_copies = false;    // `gradient` is on its way to those that own the same
};

}  // namespace scaletrain::parallel
