// A layer of ours beside PyTorch's with the same tensors.
#pragma once

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include <string>

namespace scaletrain::nn {

// Parameters and buffers of `from`, by name, into `into`.
inline void copy_tensors(const torch::nn::Module& from, const torch::nn::Module& into) {
  const at::NoGradGuard no_grad;
  const auto parameters = into.named_parameters(), buffers = into.named_buffers();
  REQUIRE((parameters.keys() == from.named_parameters().keys()));
  REQUIRE((buffers.keys() == from.named_buffers().keys()));
  for (const auto& item : from.named_parameters()) parameters[item.key()].copy_(item.value());
  for (const auto& item : from.named_buffers()) buffers[item.key()].copy_(item.value());
}

// Requires the same output, gradients and buffers, bit for bit: both call the same kernels. Outputs
// count differently in the loss.
template <class Ours, class Peers>
void compare_layers(const Ours& ours, const Peers& peers, const at::Tensor& input_values,
                    const torch::nn::Module& our_module, const torch::nn::Module& peer_module) {
  const auto run = [&](const auto& forward) {
    const at::Tensor input = input_values.clone();
    if (input.is_floating_point()) input.requires_grad_(true);
    const at::Tensor output = forward(input);
    (output * at::linspace(-1, 1, output.numel()).view_as(output)).sum().backward();
    return std::pair(output.detach(), input.grad());
  };
  const auto [our_output, our_gradient] = run(ours);
  const auto [peer_output, peer_gradient] = run(peers);
  CHECK(at::equal(our_output, peer_output));
  if (peer_gradient.defined()) CHECK(at::equal(our_gradient, peer_gradient));
  for (const auto& item : peer_module.named_parameters()) {
    const std::string name = item.key();
    CAPTURE(name);
    CHECK(at::equal(our_module.named_parameters()[name].grad(), item.value().grad()));
  }
  for (const auto& item : peer_module.named_buffers()) {
    CHECK(at::equal(our_module.named_buffers()[item.key()], item.value()));
  }
}

}  // namespace scaletrain::nn
