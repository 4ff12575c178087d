#include "lib/train/model/buffers.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/shard_reader.h"
#include "lib/dist/replicate.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/checkpoint/stored_tensors.h"

namespace scaletrain::train {
namespace {

std::vector<at::Tensor> flat(const std::vector<at::Tensor>& tensors, at::ScalarType type) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    result.push_back(tensor.detach().reshape({-1}).to(type));
  }
  return result;
}

// Returns the part of `message`, [..., all elements], for `tensor`, which begins at `begin`.
at::Tensor part(const at::Tensor& message, std::int64_t& begin, const at::Tensor& tensor) {
  std::vector<std::int64_t> shape = message.sizes().vec();
  shape.pop_back();
  shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
  at::Tensor result = message.narrow(-1, begin, tensor.numel()).reshape(shape);
  begin += tensor.numel();
  return result;
}

}  // namespace

std::vector<at::Tensor> values(const NamedTensors& named) {
  std::vector<at::Tensor> result;
  result.reserve(named.size());
  for (const auto& [name, tensor] : named) result.push_back(tensor);
  return result;
}

// In fp64, whose 53 bits hold the sum of equal fp32 values exactly.
NamedTensors mean_over_ranks(dist::Group& group, const NamedTensors& own) {
  if (group.world_size() == 1) return own;
  const at::NoGradGuard no_grad;
  NamedTensors averaged, result;
  for (const auto& [name, tensor] : own) {
    if (tensor.is_floating_point()) {
      averaged.emplace(name, tensor);
    } else {
      result.emplace(name, tensor.clone());
    }
  }
  if (averaged.empty()) return result;
  const at::Tensor message = at::cat(flat(values(averaged), at::kDouble));
  group.all_reduce_sum(message, "mean of the buffers").wait();
  message.div_(group.world_size());
  std::int64_t begin = 0;
  for (const auto& [name, tensor] : averaged) {
    result.emplace(name, part(message, begin, tensor).to(tensor.scalar_type()));
  }
  return result;
}

NamedTensors gather_ranks(dist::Group& group, const NamedTensors& own) {
  if (group.world_size() == 1) return {};
  const at::NoGradGuard no_grad;
  std::map<at::ScalarType, NamedTensors> by_type;
  for (const auto& [name, tensor] : own) by_type[tensor.scalar_type()].emplace(name, tensor);
  NamedTensors result;
  for (const auto& [type, tensors] : by_type) {
    const std::vector<at::Tensor> messages =
        group.gather(at::cat(flat(values(tensors), type)), 0, "buffers of each rank");
    if (group.rank() != 0) continue;
    const at::Tensor all = at::stack(messages);
    std::int64_t begin = 0;
    for (const auto& [name, tensor] : tensors) result.emplace(name, part(all, begin, tensor));
  }
  return result;
}

NamedTensors gather_of_replicas(dist::Group& group, const NamedTensors& own) {
  if (group.world_size() == 1) return own;
  NamedTensors there;
  for (const auto& [name, all] : own) there.emplace(name, all.to(group.device()));
  NamedTensors result;
  for (const auto& [name, all] : gather_ranks(group, there)) {
    result.emplace(name, all.transpose(0, 1).flatten(0, 1));
  }
  return result;
}

void restore_ranks(const dist::Mesh& mesh, const NamedTensors& own,
                   const std::filesystem::path& checkpoint, std::string_view weights) {
  const int readers = mesh.plan().readers();
  if (readers == 1) return;
  const at::NoGradGuard no_grad;
  dist::Group& world = mesh.world();
  const auto file = [&] {
    const std::filesystem::path of =
        weights == "model" ? format::kModelFile : format::weights_file(checkpoint, weights);
    return checkpoint / checkpoint::buffers_file(of.filename());
  };
  const bool is_found = world.rank() == 0 && format::has_tensors(file());
  if (world.broadcast_text(is_found ? "yes" : "no", 0, "buffers of each rank") == "no") {
    return dist::replicate(world, values(own), "buffers of each rank");
  }
  units::Shards rows;
  for (const auto& [name, tensor] : own) {
    rows.emplace(name, in_row(units::full_shard(tensor), mesh.reader(), readers));
  }
  checkpoint::GroupReader(world, checkpoint::ReadBy::kRank0, file, std::move(rows)).read();
}

KeptTensors::KeptTensors(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    OneType& same = types_[tensor.scalar_type()];
    same.live.push_back(tensor);
    same.kept.push_back(tensor.detach().clone());
  }
}

void KeptTensors::keep() {
  const at::NoGradGuard no_grad;
  for (auto& [type, same] : types_) at::_foreach_copy_(same.kept, same.live);
}

void KeptTensors::put_back() {
  const at::NoGradGuard no_grad;
  for (auto& [type, same] : types_) at::_foreach_copy_(same.live, same.kept);
}

// As one block of each type: a handful of kernels, however many tensors there are.
void KeptTensors::put_back_if(const at::Tensor& condition) {
  const at::NoGradGuard no_grad;
  const at::Tensor chooses = condition.ne(0);
  for (auto& [type, same] : types_) {
    const at::Tensor all =
        at::where(chooses, at::cat(flat(same.kept, type)), at::cat(flat(same.live, type)));
    std::vector<at::Tensor> chosen;
    chosen.reserve(same.live.size());
    std::int64_t begin = 0;
    for (const at::Tensor& tensor : same.live) chosen.push_back(part(all, begin, tensor));
    at::_foreach_copy_(same.live, chosen);
  }
}

}  // namespace scaletrain::train
