// The model's buffers, such as BatchNorm's running statistics: each rank updates its own.
// Evaluation and model.safetensors use copies of them, averaged over the data-parallel ranks, so
// that evaluating or saving does not change training.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/units/shard.h"

namespace scaletrain::train {

using units::NamedTensors;

std::vector<at::Tensor> values(const NamedTensors& named);

// Averages the floating-point tensors of `own` over the group's ranks and copies the others; with
// one rank returns `own` itself. The mean of equal values has the same bits. Collective.
NamedTensors mean_over_ranks(dist::Group& group, const NamedTensors& own);

// Gathers `own` of all ranks of the group in their order, [ranks, ...], on its rank 0; returns {}
// on the others, and with one rank. Collective.
NamedTensors gather_ranks(dist::Group& group, const NamedTensors& own);

// Gathers `own`, [replicas, ...] on each rank of `group`, on the group's rank 0: [replicas x ranks,
// ...], the ranks of a replica next to each other; empty on the other ranks. With one rank `own`
// itself. Every rank of the group calls it.
NamedTensors gather_of_replicas(dist::Group& group, const NamedTensors& own);

// Restores the buffers of this rank's dp_rank from `checkpoint`, which was saved with as many;
// without such buffers in it, all ranks get rank 0's. `weights`: "model", or the averaged weights
// whose buffers they are. Rank 0 reads. Collective.
void restore_ranks(const dist::Mesh& mesh, const NamedTensors& own,
                   const std::filesystem::path& checkpoint, std::string_view weights = "model");

// Backup of tensor values, restored bit for bit.
class KeptTensors {
 public:
  explicit KeptTensors(const std::vector<at::Tensor>& tensors);  // keeps their current values

  void keep();  // replaces the backup by the present values
  void put_back();
  // Restores where `condition`, a 0-dim tensor on their device, is not 0; only queues work.
  void put_back_if(const at::Tensor& condition);

 private:
  struct OneType {  // tensors that LibTorch copies in one call
    std::vector<at::Tensor> live, kept;
  };
  std::map<at::ScalarType, OneType> types_;
};

}  // namespace scaletrain::train
