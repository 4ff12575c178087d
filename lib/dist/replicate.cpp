#include "lib/dist/replicate.h"

#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include <map>
#include <utility>

namespace scaletrain::dist {
namespace {

constexpr std::int64_t kMessageElements = 8 << 20;  // 32 MiB of fp32

void replicate_message(Group& group, const std::vector<at::Tensor>& tensors, const char* name,
                       int root) {
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.detach().reshape({-1}));
  const at::Tensor message = at::cat(flat).to(group.device());
  group.broadcast(message, root, name).wait();
  if (group.rank() != root) {
    std::int64_t begin = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.detach().copy_(message.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  }
  // Gloo's thread drops its reference at some time after wait(), and would then free the memory.
  if (message.is_cpu()) message.storage().unsafeGetStorageImpl()->reset();
}

}  // namespace

void replicate(Group& group, const std::vector<at::Tensor>& tensors, const char* name, int root) {
  if (group.world_size() == 1) return;
  const at::NoGradGuard no_grad;
  // Some optimizer tensors may be in host memory.
  std::map<std::pair<at::ScalarType, at::DeviceType>, std::vector<at::Tensor>> by_type;
  for (const at::Tensor& tensor : tensors) {
    by_type[{tensor.scalar_type(), tensor.device().type()}].push_back(tensor);
  }
  for (const auto& [type, same_type] : by_type) {
    std::vector<at::Tensor> message;
    std::int64_t elements = 0;
    for (const at::Tensor& tensor : same_type) {
      message.push_back(tensor);
      elements += tensor.numel();
      if (elements >= kMessageElements) {
        replicate_message(group, std::exchange(message, {}), name, root);
        elements = 0;
      }
    }
    if (!message.empty()) replicate_message(group, message, name, root);
  }
}

}  // namespace scaletrain::dist
