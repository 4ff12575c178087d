#include "lib/parallel/compress/wire.h"

#include <vector>

namespace scaletrain::parallel {

Wire::Work Wire::all_reduce(const at::Tensor& tensor) {
  bytes_ += static_cast<std::int64_t>(tensor.nbytes());
  std::vector<at::Tensor> tensors{tensor};
  return group_->allreduce(tensors);
}

Wire::Work Wire::all_gather(const at::Tensor& all, const at::Tensor& own) {
  bytes_ += static_cast<std::int64_t>(own.nbytes());
  at::Tensor output = all.view({-1}), input = own.view({-1});  // Gloo needs flat tensors on GPUs
  return group_->_allgather_base(output, input);
}

}  // namespace scaletrain::parallel
