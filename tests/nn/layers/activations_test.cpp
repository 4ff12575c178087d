#include "lib/nn/layers/activations.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/core/cpu.h"

namespace scaletrain::nn {
namespace {

struct Activation {
  std::string name;
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> ours, peers;
};
const std::vector<Activation> kActivations{
    {"gelu", [](const at::Tensor& x, const at::Tensor& /*up*/) { return nn::gelu(x); },
     [](const at::Tensor& x, const at::Tensor& /*up*/) { return at::gelu(x); }},
    {"tanh_gelu", [](const at::Tensor& x, const at::Tensor& /*up*/) { return tanh_gelu(x); },
     [](const at::Tensor& x, const at::Tensor& /*up*/) { return at::gelu(x, "tanh"); }},
    {"swiglu", swiglu, [](const at::Tensor& x, const at::Tensor& up) { return at::silu(x) * up; }},
};

double largest_error(const at::Tensor& value, const at::Tensor& expected) {
  return (value.to(at::kDouble) - expected).abs().max().item<double>();
}

// Output and gradients of both inputs, where they have one.
std::vector<at::Tensor> run_activation(const Activation& one, bool ours, const at::Tensor& x,
                                       const at::Tensor& up) {
  const at::Tensor a = x.detach().clone().requires_grad_(true);
  const at::Tensor b = up.detach().clone().requires_grad_(true);
  const at::Tensor output = ours ? one.ours(a, b) : one.peers(a, b);
  (output * at::linspace(-1, 1, output.numel(), output.options()).view_as(output)).sum().backward();
  std::vector<at::Tensor> result{output.detach(), a.grad()};
  if (b.grad().defined()) result.push_back(b.grad());
  return result;
}

}  // namespace

TEST_CASE("activations in fp32 are ATen's in doubles, in values and gradients") {
  // More than a thread's share; whole vectors and single numbers; far out.
  const at::Tensor x = at::cat({at::linspace(-12, 12, 40003), at::tensor({0.0F, 60.0F, -60.0F})});
  const at::Tensor up = at::linspace(2, -1, x.numel());
  for (const Activation& one : kActivations) {
    CAPTURE(one.name);
    const auto ours = run_activation(one, true, x, up);
    const auto peers = run_activation(one, false, x.to(at::kDouble), up.to(at::kDouble));
    REQUIRE(ours.size() == peers.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      CAPTURE(i);
      CHECK(largest_error(ours[i], peers[i]) <
            2e-6 * std::max(1.0, peers[i].abs().max().item<double>()));
    }
  }
}

TEST_CASE("activations in bf16 are ATen's in doubles, rounded once, in values and gradients") {
  const at::Tensor x = at::cat({at::linspace(-12, 12, 40003), at::tensor({0.0F, 60.0F, -60.0F})});
  const at::Tensor up = at::linspace(2, -1, x.numel()).to(at::kBFloat16);
  const at::Tensor shares = at::linspace(-1, 1, x.numel()).to(at::kBFloat16);
  const auto run = [&](const auto& activation, at::ScalarType type) {
    const at::Tensor a = x.to(at::kBFloat16).to(type).requires_grad_(true);
    const at::Tensor b = up.detach().clone().to(type).requires_grad_(true);
    const at::Tensor output = activation(a, b);
    CHECK((output.scalar_type() == type));
    output.backward(shares.to(type));
    std::vector<at::Tensor> result{output.detach(), a.grad()};
    if (b.grad().defined()) result.push_back(b.grad());
    return result;
  };
  for (const Activation& one : kActivations) {
    if (one.name == "gelu") continue;  // ATen's
    CAPTURE(one.name);
    const auto ours = run(one.ours, at::kBFloat16), peers = run(one.peers, at::kDouble);
    REQUIRE(ours.size() == peers.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      CAPTURE(i);
      // bf16 has 8 bits; what the formulas in fp32 leave out counts where the result is near 0.
      const double share = core::has_avx512() ? 1.0 / 256 : 1.0 / 32;
      const at::Tensor allowed = peers[i].abs() * share + 1e-5;
      CHECK(((ours[i].to(at::kDouble) - peers[i]).abs() <= allowed).all().item<bool>());
    }
  }
}

TEST_CASE("a result in bf16 is the nearest number, in all but one of 10,000, and right far out") {
  if (!core::has_avx512()) return;  // ATen's
  constexpr std::int64_t kPairs = 200003;
  const at::Tensor x = at::linspace(-6, 6, kPairs).to(at::kBFloat16);
  const at::Tensor up = at::linspace(1, 2, kPairs).mul(7919).frac().add(1).to(at::kBFloat16);
  const at::Tensor expected = (at::silu(x.to(at::kDouble)) * up.to(at::kDouble)).to(at::kBFloat16);
  CHECK(swiglu(x, up).ne(expected).sum().item<int>() <= kPairs / 10000);
  const at::Tensor far = at::tensor({1e30F, -1e30F, 200.0F, -200.0F}).to(at::kBFloat16);
  const at::Tensor found = swiglu(far, at::ones_like(far)).to(at::kDouble);
  CHECK(((found - far.to(at::kDouble).clamp_min(0)).abs() <= 1e-5).all().item<bool>());
}

TEST_CASE("activations of other types, layouts and precisions are ATen's") {
  torch::manual_seed(1);
  const at::Tensor x = at::randn({2, 3, 4, 5}), up = at::randn({2, 3, 4, 5});
  for (const Activation& one : kActivations) {
    CAPTURE(one.name);
    const at::Tensor doubles = x.to(at::kDouble), wide = up.to(at::kDouble);
    CHECK(at::equal(one.ours(doubles, wide), one.peers(doubles, wide)));
    const at::Tensor last = x.contiguous(at::MemoryFormat::ChannelsLast);
    CHECK(largest_error(one.ours(last, up), one.peers(doubles, wide)) < 1e-6);
    CHECK(largest_error(one.ours(x.select(2, 1), up.select(2, 1)),
                        one.peers(doubles.select(2, 1), wide.select(2, 1))) < 1e-6);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    CHECK(at::equal(one.ours(x, up), one.peers(x, up)));
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
}

TEST_CASE("what is not finite stays so") {
  const at::Tensor x = at::full({9}, NAN), up = at::ones({9});
  for (const Activation& one : kActivations) {
    CAPTURE(one.name);
    CHECK(one.ours(x, up).isnan().all().item<bool>());
    const at::Tensor halves = one.ours(x.to(at::kBFloat16), up.to(at::kBFloat16));
    CHECK(halves.isnan().all().item<bool>());
  }
}

}  // namespace scaletrain::nn
