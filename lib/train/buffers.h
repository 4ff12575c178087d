// The model's buffers, such as BatchNorm's running statistics: each rank moves its own. What is
// evaluated and what model.safetensors holds is their mean over the ranks, always in copies: that
// a run was evaluated or saved changes nothing of what it trains.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::train {

using NamedTensors = std::map<std::string, at::Tensor>;

std::vector<at::Tensor> values(const NamedTensors& named);

// The mean over the ranks of what is floating point in `own`, this rank's of the rest, as copies;
// with one rank `own` itself. Equal values have that value as their mean, bit for bit. Every rank
// calls it.
NamedTensors mean_over_ranks(dist::Group& group, const NamedTensors& own);

// All ranks' own in their order, [ranks, ...], on rank 0; nothing on the others, and nothing with
// one rank. Every rank calls it.
NamedTensors gather_ranks(dist::Group& group, const NamedTensors& own);

// Fills `own` with what this rank had when `checkpoint` was saved on as many ranks; where that has
// nothing of each rank, leaves rank 0's on all. Only rank 0 reads. Every rank calls it.
void restore_ranks(dist::Group& group, const NamedTensors& own,
                   const std::filesystem::path& checkpoint);

// What tensors held, to give it back bit for bit.
class KeptTensors {
 public:
  explicit KeptTensors(const std::vector<at::Tensor>& tensors);  // keeps what they hold now

  void keep();  // what they hold now instead
  void put_back();
  // The same where `condition`, a 0-dim tensor on their device, is not 0; only queues work.
  void put_back_if(const at::Tensor& condition);

 private:
  struct OneType {  // what LibTorch copies at once on a device
    std::vector<at::Tensor> live, kept;
  };
  std::map<at::ScalarType, OneType> types_;
};

}  // namespace scaletrain::train
