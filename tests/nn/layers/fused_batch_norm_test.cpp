#include "lib/nn/layers/fused_batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/dist/device.h"
#include "lib/nn/layers/sync_batch_norm.h"
#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;

constexpr auto kLast = at::MemoryFormat::ChannelsLast;

Tensor channels_last(const Tensor& values) { return values.contiguous(kLast); }

bool has_device() { return std::filesystem::exists("/dev/nvidiactl"); }

at::Device the_device() { return dist::choose_device("cuda", {.rank = 0, .ranks = 1}); }

struct Row {
  at::ScalarType type;
  std::vector<std::int64_t> sizes;
  bool relu, residual;
  double mean = 0.5, deviation = 1;
  bool weight_frozen = false, bias_frozen = false;
};

struct Results {
  Tensor output, of_input, of_residual, of_weight, of_bias, mean, variance;
};

struct Inputs {
  Tensor values, residual, gradient, weight, bias;
};

Inputs draw(const Row& row, at::Device device) {
  const auto map = [&](double mean, double deviation) {
    return channels_last(
        (torch::randn(at::IntArrayRef(row.sizes)) * deviation + mean).to(device, row.type));
  };
  const std::int64_t channels = row.sizes[1];
  Inputs inputs{map(row.mean, row.deviation), Tensor(), map(0.1, 1),
                (torch::rand({channels}) + 0.5).to(device), torch::randn({channels}).to(device)};
  if (row.residual) inputs.residual = map(0, 1);
  // As a mean over pixels gives it back: in no layout of its own.
  if (row.sizes[2] == 3) inputs.gradient = inputs.gradient.narrow(2, 0, 1).expand_as(inputs.values);
  return inputs;
}

Results by_kernels(const Row& row, const Inputs& from) {
  const auto leaf = [](const Tensor& tensor, bool frozen) {
    return tensor.defined() ? tensor.detach().requires_grad_(!frozen) : tensor;
  };
  const Tensor values = leaf(from.values, false), residual = leaf(from.residual, false);
  const Tensor weight = leaf(from.weight, row.weight_frozen),
               bias = leaf(from.bias, row.bias_frozen);
  REQUIRE(fused_batch_norm_takes(values, residual, weight, bias));
  const FusedBatchNorm options{.residual = residual,
                               .relu = row.relu,
                               .running_mean = at::full_like(weight, 0.25),
                               .running_variance = at::full_like(weight, 2)};
  const Tensor output = fused_batch_norm(values, weight, bias, options);
  CHECK(output.is_contiguous(kLast));
  output.backward(from.gradient);
  return {output.detach(),         values.grad(), residual.defined() ? residual.grad() : residual,
          weight.grad(),           bias.grad(),   options.running_mean,
          options.running_variance};
}

// In doubles, but that the ReLU lets pass what it lets pass in `output`.
Results in_doubles(const Row& row, const Inputs& from, const Tensor& output) {
  const auto leaf = [](const Tensor& tensor) {
    return tensor.to(at::kDouble).requires_grad_(true);
  };
  const Tensor values = leaf(from.values), weight = leaf(from.weight), bias = leaf(from.bias);
  const Tensor residual = from.residual.defined() ? leaf(from.residual) : Tensor();
  const Tensor mean = at::full_like(weight, 0.25), variance = at::full_like(weight, 2);
  Tensor sum = at::batch_norm(values, weight, bias, mean, variance, true, 0.1, 1e-5, false);
  if (residual.defined()) sum = sum + residual;
  Tensor gradient = from.gradient.to(at::kDouble);
  if (row.relu) gradient = gradient * output.gt(0);
  sum.backward(gradient);
  return {row.relu ? sum.detach().relu() : sum.detach(),
          values.grad(),
          residual.defined() ? residual.grad() : residual,
          weight.grad(),
          bias.grad(),
          mean,
          variance};
}

}  // namespace

TEST_CASE("on a CPU there are no kernels of BatchNorm") {
  CHECK_FALSE(fused_batch_norm_takes(channels_last(at::zeros({2, 8, 3, 3})), {}, at::ones({8}),
                                     at::zeros({8})));
}

TEST_CASE("on a device BatchNorm's kernels take maps with channels last, and what goes with them" *
          doctest::skip(!has_device())) {
  const at::Device device = the_device();
  const Tensor map = channels_last(at::zeros({2, 8, 3, 3}, device)), ones = at::ones({8}, device);
  CHECK(fused_batch_norm_takes(map, {}, ones, ones));
  CHECK(fused_batch_norm_takes(map, map, ones, ones));
  CHECK(fused_batch_norm_takes(map.to(at::kHalf), {}, ones, ones));
  CHECK(fused_batch_norm_takes(at::zeros({2, 8, 1, 1}, device), {}, ones, ones));
  CHECK_FALSE(fused_batch_norm_takes(map.contiguous(), {}, ones, ones));
  CHECK_FALSE(fused_batch_norm_takes(map, map.contiguous(), ones, ones));
  CHECK_FALSE(fused_batch_norm_takes(map, map.to(at::kHalf), ones, ones));
  CHECK_FALSE(fused_batch_norm_takes(map, map.narrow(0, 0, 1), ones, ones));
  CHECK_FALSE(fused_batch_norm_takes(map.to(at::kDouble), {}, ones, ones));
  CHECK_FALSE(fused_batch_norm_takes(map, {}, ones.to(at::kHalf), ones));
  CHECK_FALSE(fused_batch_norm_takes(map, {}, ones, ones.to(at::kDouble)));
  CHECK_FALSE(fused_batch_norm_takes(at::zeros({1, 8, 1, 1}, device), {}, ones, ones));

  const Tensor weight = ones.clone().requires_grad_(true);  // alone: no gradient of the map
  fused_batch_norm(map, weight, ones, {.relu = true}).sum().backward();
  CHECK(at::equal(weight.grad(), at::zeros({8}, device)));
}

TEST_CASE("on a device BatchNorm's kernels give what doubles give, with all gradients" *
          doctest::skip(!has_device())) {
  const at::Device device = the_device();
  torch::manual_seed(5);
  const std::vector<Row> rows = {
      {at::kFloat, {4, 3, 5, 7}, true, false},
      {at::kFloat, {4, 64, 9, 9}, true, true},
      {at::kFloat, {4, 65, 9, 9}, true, true},
      {at::kFloat, {4, 65, 9, 9}, false, false},
      {at::kFloat, {3, 2048, 3, 3}, true, false},
      {at::kFloat, {100, 64, 32, 32}, true, false},
      {at::kFloat, {8, 32, 16, 16}, true, false, 100, 0.1},
      {at::kHalf, {4, 64, 9, 9}, true, true},
      {at::kHalf, {4, 64, 9, 9}, true, false},
      {at::kHalf, {5, 3, 3, 8}, true, true},
      {at::kBFloat16, {4, 3, 5, 7}, true, true},
      {at::kBFloat16, {4, 64, 9, 9}, false, false},
      {at::kBFloat16, {4, 64, 9, 9}, true, false},
      {at::kBFloat16, {4, 64, 9, 9}, false, true},
      {at::kBFloat16, {4, 64, 9, 9}, true, true},
      {at::kBFloat16, {4, 65, 9, 9}, true, false},
      {at::kBFloat16, {4, 65, 9, 9}, true, true},
      {at::kBFloat16, {4, 72, 9, 9}, true, true},
      {at::kBFloat16, {64, 2048, 1, 1}, true, false},
      {at::kBFloat16, {16, 2048, 7, 7}, true, true},
      {at::kBFloat16, {16, 2048, 7, 7}, true, false},
      {at::kBFloat16, {100, 64, 32, 32}, true, true},
      {at::kBFloat16, {100, 64, 32, 32}, true, false},
      {at::kBFloat16, {100, 256, 32, 32}, true, true},
      {at::kBFloat16, {2, 1, 3, 3}, true, false},
      {at::kBFloat16, {8, 32, 16, 16}, true, false, 8, 0.05},
      {at::kBFloat16, {4, 64, 9, 9}, true, true, 0.5, 1, true, false},
      {at::kBFloat16, {4, 64, 9, 9}, true, false, 0.5, 1, false, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.type);
    CAPTURE(at::IntArrayRef(row.sizes));
    CAPTURE(row.relu);
    CAPTURE(row.residual);
    CAPTURE(row.mean);
    const Inputs inputs = draw(row, device);
    const Results ours = by_kernels(row, inputs), again = by_kernels(row, inputs);
    const Results expected = in_doubles(row, inputs, ours.output);
    // A rounding to the type, and fp32's mean, which is off by a part of itself.
    const double near = row.type == at::kFloat ? 1e-5 : row.type == at::kHalf ? 1e-3 : 4e-3;
    const double far = 1e-5 + 4e-7 * row.mean / row.deviation, by = 1 / row.deviation;
    const auto same = [](const Tensor& one, const Tensor& other, double relative, double absolute) {
      return at::allclose(one.to(at::kDouble), other, relative, absolute);
    };
    const double values = static_cast<double>(inputs.values.numel() / inputs.values.size(1));
    const double of_sums = 1e-4 + 1e-7 * values + 1e-7 * row.mean / row.deviation * values;
    CHECK(same(ours.output, expected.output, near, far));
    CHECK(same(ours.mean, expected.mean, 1e-5, 1e-6));
    CHECK(same(ours.variance, expected.variance, 1e-5, 1e-6));
    CHECK(same(ours.of_input, expected.of_input, near, 2 * far * by));
    if (row.residual) CHECK(same(ours.of_residual, expected.of_residual, 0, 0));
    CHECK(ours.of_weight.defined() == !row.weight_frozen);
    CHECK(ours.of_bias.defined() == !row.bias_frozen);
    if (!row.weight_frozen) CHECK(same(ours.of_weight, expected.of_weight, 1e-4, of_sums));
    if (!row.bias_frozen) CHECK(same(ours.of_bias, expected.of_bias, 1e-5, of_sums));
    CHECK(at::equal(ours.output, again.output));
    CHECK(at::equal(ours.of_input, again.of_input));
    if (!row.weight_frozen) CHECK(at::equal(ours.of_weight, again.of_weight));
  }
}

TEST_CASE("on a device BatchNorm by its kernels respects again, evaluation and missing gradients" *
          doctest::skip(!has_device())) {
  const at::Device device = the_device();
  torch::manual_seed(6);
  SyncBatchNorm norm(64, {});
  const at::NoGradGuard no_grad;
  for (const Tensor& parameter : norm.parameters()) parameter.uniform_(0.5, 1.5);
  norm.to(device);
  const Tensor input = channels_last(torch::randn({4, 64, 9, 9}).to(device, at::kBFloat16));
  const auto buffers = norm.named_buffers();
  const auto counts = [&] { return buffers["num_batches_tracked"].item<std::int64_t>(); };
  const Tensor first = norm.forward_relu(input, {}, input);
  CHECK(counts() == 1);
  CHECK_FALSE(first.requires_grad());
  const Tensor mean = buffers["running_mean"].clone(), variance = buffers["running_var"].clone();
  CHECK(mean.ne(0).all().item<bool>());
  CHECK(at::equal(norm.forward_relu(input, {.again = true}, input), first));
  const auto parameters = norm.named_parameters();
  CHECK(at::allclose(norm.forward(input, {.again = true}),
                     at::batch_norm(input, parameters["weight"], parameters["bias"], mean.clone(),
                                    variance.clone(), true, 0.1, 1e-5, true),
                     8e-3, 1e-4));
  CHECK(counts() == 1);
  CHECK(at::equal(buffers["running_mean"], mean));
  CHECK(at::equal(buffers["running_var"], variance));
  int calls = 0;  // of ranks: LibTorch's way
  norm.forward_relu(input, {.sum_over_ranks = [&](const Tensor&) { ++calls; }}, input);
  CHECK(calls == 1);
  norm.eval();
  const Tensor expected =
      at::batch_norm(input, parameters["weight"], parameters["bias"], buffers["running_mean"],
                     buffers["running_var"], false, 0, 1e-5, true);
  CHECK(at::equal(norm.forward_relu(input, {}), expected.relu()));
}

TEST_CASE("on a device a ResNet with the kernels has the gradients of one in doubles" *
          doctest::skip(!has_device())) {
  const at::Device device = the_device();
  const bool allowed = at::globalContext().allowTF32CuDNN();
  at::globalContext().setAllowTF32CuDNN(false);
  torch::manual_seed(7);
  const Tensor images = torch::randn({8, 3, 64, 64});
  // Of a ResNet-50 PyTorch's gradients in fp32 are 3 % from those in doubles too, on a CPU.
  for (const std::string name : {"resnet18", "resnet50"}) {
    CAPTURE(name);
    const double tolerance = name == "resnet18" ? 0.01 : 0.1;
    std::vector<Tensor> logits;
    std::vector<std::vector<Tensor>> gradients, buffers;
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const auto model = make_model(model_recipe(name), 64, 1);
      model->to(device, type);
      const Tensor input = channels_last(images.to(device, type));
      const Tensor output = model->forward(input);
      output.log_softmax(1).select(1, 3).sum().backward();
      logits.push_back(output.detach().to(at::kDouble));
      gradients.emplace_back();
      for (const Tensor& parameter : model->parameters()) {
        gradients.back().push_back(parameter.grad().to(at::kDouble));
      }
      buffers.emplace_back();
      for (const Tensor& buffer : model->buffers()) {
        buffers.back().push_back(buffer.to(at::kDouble).clone());
      }
      model->forward(input, {.again = true});
      for (std::size_t i = 0; i < buffers.back().size(); ++i) {
        CHECK(at::equal(model->buffers()[i].to(at::kDouble), buffers.back()[i]));
      }
    }
    CHECK(at::allclose(logits[0], logits[1], 1e-3, 1e-3));
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      CAPTURE(i);
      const double off = (gradients[0][i] - gradients[1][i]).norm().item<double>();
      CHECK(off < tolerance * gradients[1][i].norm().item<double>());
    }
    for (std::size_t i = 0; i < buffers[0].size(); ++i) {
      CHECK(at::allclose(buffers[0][i], buffers[1][i], 1e-3, 1e-4));
    }
  }
  at::globalContext().setAllowTF32CuDNN(allowed);
}

}  // namespace scaletrain::nn
