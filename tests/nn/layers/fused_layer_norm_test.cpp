#include "lib/nn/layers/fused_layer_norm.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "lib/dist/device.h"

namespace scaletrain::nn {
namespace {

constexpr double kNormEps = 1e-5;

struct NormCase {
  std::int64_t rows, channels;
  at::ScalarType input, branch, output;
  bool has_branch = false, reads_sum = false;
  bool trains_weight = true, trains_bias = true;
  bool is_aligned = true;  // whether rows begin where 16 bytes do
};

// What a row's tensors hold, in its types.
struct NormValues {
  at::Tensor input, branch, weight, bias, of_output, of_sum;
};

// [rows, channels] of `type`; not aligned: one number behind the beginning of its memory.
at::Tensor draw_rows(const NormCase& row, at::ScalarType type, at::Device device) {
  const at::Tensor memory = torch::randn({row.rows * row.channels + 1}, at::kDouble);
  return memory.to(device, type)
      .narrow(0, row.is_aligned ? 0 : 1, row.rows * row.channels)
      .view({row.rows, row.channels});
}

NormValues draw_values(const NormCase& row, at::Device device) {
  NormValues values;
  values.input = draw_rows(row, row.input, device);
  values.weight = torch::rand({row.channels}, at::kFloat).add(0.5).to(device);
  values.bias = torch::randn({row.channels}, at::kFloat).to(device);
  values.of_output = draw_rows(row, row.output, device);
  if (row.has_branch) values.branch = draw_rows(row, row.branch, device);
  if (row.reads_sum) values.of_sum = draw_rows(row, row.input, device);
  return values;
}

// Sum, output and gradients of input, branch, weight and bias, in doubles on the CPU; undefined
// where there is none.
std::vector<at::Tensor> norm_pass(const NormCase& row, const NormValues& values, bool fused) {
  const at::ScalarType wider = at::kDouble;
  const auto leaf = [&](const at::Tensor& of, bool trains) {
    return of.defined() ? (fused ? of.detach() : of.to(wider)).requires_grad_(trains) : of;
  };
  const at::Tensor input = leaf(values.input, true), branch = leaf(values.branch, true);
  const at::Tensor weight = leaf(values.weight, row.trains_weight);
  const at::Tensor bias = leaf(values.bias, row.trains_bias);
  SumAndNorm both;
  if (!fused) {
    both.sum = branch.defined() ? input + branch : input;
    // The sum that is normalised is rounded.
    const at::Tensor rounded = both.sum + (both.sum.to(row.input).to(wider) - both.sum).detach();
    both.output = at::layer_norm(rounded, weight.sizes(), weight, bias, kNormEps);
  } else if (row.has_branch || row.reads_sum) {
    both = fused_sum_layer_norm(input, branch, {weight, bias, kNormEps}, row.output);
  } else {
    both = {input, fused_layer_norm(input, {weight, bias, kNormEps}, row.output)};
  }
  std::vector<at::Tensor> outputs{both.output}, gradients{values.of_output};
  if (row.reads_sum) {
    outputs.push_back(both.sum);
    gradients.push_back(values.of_sum);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    gradients[i] = gradients[i].to(outputs[i].scalar_type());
  }
  torch::autograd::backward(outputs, gradients);
  std::vector<at::Tensor> result{both.sum.detach(), both.output.detach()};
  for (const at::Tensor& of : {input, branch, weight, bias}) {
    result.push_back(of.defined() ? of.grad() : of);
  }
  if (fused) {
    CHECK((both.sum.scalar_type() == row.input));
    CHECK((both.output.scalar_type() == row.output));
  }
  for (at::Tensor& one : result) {
    if (one.defined()) one = one.to(at::kDouble).cpu();
  }
  return result;
}

// Half of a last digit, and sums in fp32.
double norm_tolerance(at::ScalarType type) {
  return type == at::kBFloat16 ? 4e-3 : (type == at::kHalf ? 5e-4 : 0) + 2e-5;
}

void compare_norms(const NormCase& row, at::Device device) {
  CAPTURE(row.rows);
  CAPTURE(row.channels);
  CAPTURE(std::string(c10::toString(row.input)));
  CAPTURE(std::string(c10::toString(row.branch)));
  CAPTURE(std::string(c10::toString(row.output)));
  CAPTURE(row.is_aligned);
  const NormValues values = draw_values(row, device);
  REQUIRE(fused_layer_norm_takes(values.input, values.branch, values.weight, row.output));
  const std::vector<at::Tensor> ours = norm_pass(row, values, true),
                                peers = norm_pass(row, values, false);
  const at::ScalarType sums = at::kFloat;
  const std::initializer_list<at::ScalarType> types{row.input,  row.output, row.input,
                                                    row.branch, sums,       sums};
  for (std::size_t i = 0; i < peers.size(); ++i) {
    CAPTURE(i);
    REQUIRE(ours[i].defined() == peers[i].defined());
    if (!ours[i].defined()) continue;
    const double allowed = norm_tolerance(types.begin()[i]);
    const double least = i < 4 ? 1 : std::sqrt(static_cast<double>(row.rows));
    CHECK(at::allclose(ours[i], peers[i], allowed, allowed * least));
  }
}

}  // namespace

TEST_CASE("on a CPU there are no kernels of layer norms") {
  CHECK_FALSE(fused_layer_norm_takes(at::zeros({2, 4}), {}, at::zeros({4}), at::kFloat));
}

TEST_CASE("on a device norms of rows and of sums are at::layer_norm's, and so are their gradients" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  torch::manual_seed(5);
  const auto f = at::kFloat, h = at::kHalf, b = at::kBFloat16;
  // As models have them, alone and as sums.
  for (const std::int64_t channels : {96, 384, 768, 1024, 2048, 4096, 5120, 8192, 12288, 20000}) {
    compare_norms({197, channels, f, f, b}, device);
    compare_norms({37, channels, f, b, b, true, true}, device);
    compare_norms({5, channels, b, b, b, true, true}, device);
  }
  // Each type beside each other one.
  for (const auto& [input, branch, output] :
       std::initializer_list<std::array<at::ScalarType, 3>>{{f, f, f},
                                                            {f, f, h},
                                                            {f, f, b},
                                                            {f, h, f},
                                                            {f, h, h},
                                                            {f, b, f},
                                                            {f, b, b},
                                                            {h, h, h},
                                                            {h, h, f},
                                                            {b, b, b},
                                                            {b, b, f}}) {
    compare_norms({19, 768, input, branch, output, true, true}, device);
    compare_norms({19, 257, input, branch, output, true, true}, device);
    compare_norms({3, 320, input, branch, output, true, true, true, true, false}, device);
  }
  // Rows without a partner, channels that are no multiple of anything, and what is frozen.
  for (const std::int64_t channels : {5, 7, 8, 252, 1000, 1028}) {
    compare_norms({1, channels, f, f, b}, device);
    compare_norms({301, channels, f, b, b, true, false}, device);
    compare_norms({301, channels, f, f, f, false, true, false, true}, device);
    compare_norms({17, channels, b, b, b, true, true, true, false}, device);
    compare_norms({17, channels, h, h, h, false, false, false, false}, device);
  }
  compare_norms({25216, 768, f, b, b, true, true}, device);
}

TEST_CASE("on a device a norm's gradients are the same bits each time" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  const NormCase row{5000, 768, at::kFloat, at::kBFloat16, at::kBFloat16, true, true};
  const NormValues values = draw_values(row, device);
  const std::vector<at::Tensor> first = norm_pass(row, values, true),
                                second = norm_pass(row, values, true);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i], second[i]));
}

}  // namespace scaletrain::nn
