#include "lib/dist/pipe_links.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::dist {
namespace {

using core::Axis;

// Returns the elements as one contiguous tensor with a version counter of its own: Gloo marks a
// device tensor that it sends as modified, and autograd may have saved the original.
at::Tensor elements_of(const at::Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) {
    throw core::InternalError("pipeline", "a tensor with gaps is sent");
  }
  return tensor.variable_data().as_strided({tensor.numel()}, {1});
}

// Pipeline groups in which this rank is one of the two ends.
struct Ends {
  std::array<Group*, 2> activations{};  // previous rank to this one, this one to the next
  std::array<Group*, 2> gradients{};    // next rank to this one, this one to the previous
};

// All ranks of a pipeline open their groups from the first stage to the last.
Ends open_ends(Mesh& mesh) {
  const std::vector<int> ranks = mesh.plan().group(mesh.rank(), {Axis::kPipe});
  const auto count = static_cast<int>(ranks.size());
  const int own = mesh.coordinate(Axis::kPipe);
  Ends ends;
  for (int place = 0; place < count; ++place) {
    const int next = (place + 1) % count;
    if (own != place && own != next) continue;
    const int here = ranks[static_cast<std::size_t>(place)];
    const int there = ranks[static_cast<std::size_t>(next)];
    Group& activations =
        mesh.open({here, there}, fmt::format("activations from rank {} to {}", here, there));
    Group& gradients =
        mesh.open({there, here}, fmt::format("gradients from rank {} to {}", there, here));
    const std::size_t end = own == place ? 1 : 0;
    ends.activations[end] = &activations;
    ends.gradients[1 - end] = &gradients;
  }
  return ends;
}

}  // namespace

// In a group of two ranks a broadcast is a send; every backend has it.
void PipeLink::send(const at::Tensor& tensor, const char* name) {
  while (!under_way_.empty() && under_way_.front().first.is_over()) {
    under_way_.front().first.wait();
    under_way_.pop_front();
  }
  const at::Tensor elements = elements_of(tensor);
  under_way_.emplace_back(group_.broadcast(elements, 0, name), elements);
}

void PipeLink::receive(const at::Tensor& tensor, const char* name) {
  group_.broadcast(elements_of(tensor), 0, name).wait();
}

// In front their count.
void PipeLink::send_numbers(const std::vector<std::int64_t>& numbers, const char* name) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  if (count > kMostNumbers) {
    throw core::InternalError("pipeline", fmt::format("{}: {} numbers in a message", name, count));
  }
  const at::Tensor host = at::zeros({1 + kMostNumbers}, at::kLong);
  auto* const values = host.mutable_data_ptr<std::int64_t>();
  values[0] = count;
  std::copy(numbers.begin(), numbers.end(), values + 1);
  send(host.to(device()), name);
}

std::vector<std::int64_t> PipeLink::receive_numbers(const char* name) {
  const at::Tensor message =
      at::zeros({1 + kMostNumbers}, at::TensorOptions(at::kLong).device(device()));
  receive(message, name);
  const at::Tensor host = group_.to_host(message);
  const auto* const values = host.const_data_ptr<std::int64_t>();
  return {values + 1, values + 1 + values[0]};
}

void PipeLink::flush() {
  while (!under_way_.empty()) {
    under_way_.front().first.wait();
    under_way_.pop_front();
  }
}

PipeLinks open_pipe_links(Mesh& mesh) {
  const Ends ends = open_ends(mesh);
  return {.activations_in = PipeLink(*ends.activations[0]),
          .activations_out = PipeLink(*ends.activations[1]),
          .gradients_in = PipeLink(*ends.gradients[0]),
          .gradients_out = PipeLink(*ends.gradients[1])};
}

}  // namespace scaletrain::dist
