#include "lib/engine/deferred_weights.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <memory>

#include "lib/parallel/gradient_hook.h"

namespace scaletrain::engine {
namespace {

using Options = nn::Linear::Options;

std::shared_ptr<nn::Linear> layer_of(const Options& options) {
  at::manual_seed(1);
  auto linear = std::make_shared<nn::Linear>(options);
  for (const at::Tensor& parameter : linear->parameters()) {
    at::NoGradGuard no_grad;
    parameter.normal_();
  }
  return linear;
}

at::Tensor input_of(const Options& options, std::int64_t rows) {
  at::manual_seed(2);
  return at::randn({2, rows, options.in}).requires_grad_();
}

// One that LibTorch multiplies, one of our kernels, one of oneDNN's; each layout, with and without
// bias.
const std::vector<std::pair<Options, std::int64_t>>& shapes() {
  static const std::vector<std::pair<Options, std::int64_t>> shapes{
      {{.in = 3, .out = 5}, 2},
      {{.in = 16, .out = 32, .bias = false}, 8},
      {{.in = 16, .out = 32, .inputs_first = true}, 8},
      {{.in = 256, .out = 256}, 64},
      {{.in = 256, .out = 128, .inputs_first = true}, 64}};
  return shapes;
}

}  // namespace

TEST_CASE("a backward in two halves has the same bits as one backward") {
  for (const auto& [options, rows] : shapes()) {
    CAPTURE(options.in);
    CAPTURE(options.inputs_first);
    const auto whole = layer_of(options), halves = layer_of(options);
    const at::Tensor input = input_of(options, rows), same = input_of(options, rows);
    auto deferred = std::make_shared<DeferredWeights>();
    deferred->attach(*halves);
    DeferredWeights::Work work;
    std::vector<at::Tensor> outputs;
    const std::size_t users = same.storage().use_count();
    for (int micro = 0; micro < 2; ++micro) {  // the second adds
      const at::Tensor want = whole->forward(input), got = halves->forward(same);
      CHECK(at::equal(want, got));
      (want * want).sum().backward();
      const DeferredWeights::Scope scope(*deferred, work);
      (got * got).sum().backward();
      outputs.push_back(got);
    }
    CHECK(at::equal(input.grad(), same.grad()));
    for (const at::Tensor& parameter : halves->parameters()) CHECK(!parameter.grad().defined());
    work.run();
    work.run();                                  // nothing is left
    CHECK(same.storage().use_count() == users);  // an output keeps nothing of what it came from
    for (std::size_t i = 0; i < whole->parameters().size(); ++i) {
      CHECK(at::equal(whole->parameters()[i].grad(), halves->parameters()[i].grad()));
    }
  }
}

TEST_CASE("a hook on a parameter's gradient runs when the deferred gradient is computed") {
  const Options options{.in = 3, .out = 4};
  const auto linear = layer_of(options);
  const auto deferred = std::make_shared<DeferredWeights>();
  deferred->attach(*linear);
  std::vector<std::vector<std::int64_t>> heard;
  for (const at::Tensor& parameter : linear->parameters()) {
    parallel::on_gradient(parameter, [&heard](const at::Tensor& whole) {
      if (!whole.grad().defined()) return;  // autograd calls it too, without one
      heard.push_back(whole.grad().sizes().vec());
      whole.mutable_grad().reset();
    });
  }
  DeferredWeights::Work work;
  {
    const DeferredWeights::Scope scope(*deferred, work);
    linear->forward(input_of(options, 2)).sum().backward();
  }
  CHECK(heard.empty());
  work.run();
  CHECK(heard == std::vector<std::vector<std::int64_t>>{{4, 3}, {4}});
}

TEST_CASE("behind a scope the weights' gradients come at once again") {
  const Options options{.in = 3, .out = 4, .bias = false};
  const auto linear = layer_of(options);
  const auto deferred = std::make_shared<DeferredWeights>();
  deferred->attach(*linear);
  const at::Tensor weight = linear->named_parameters()["weight"];
  DeferredWeights::Work work;
  {
    const DeferredWeights::Scope scope(*deferred, work);
    linear->forward(input_of(options, 2)).sum().backward();
  }
  CHECK(!weight.grad().defined());
  linear->forward(input_of(options, 2)).sum().backward();
  CHECK(weight.grad().defined());
}

TEST_CASE("without a scope the weights' gradients come at once, and frozen ones never") {
  const Options options{.in = 3, .out = 4};
  const auto linear = layer_of(options);
  const auto deferred = std::make_shared<DeferredWeights>();
  deferred->attach(*linear);
  const at::Tensor weight = linear->named_parameters()["weight"];
  const at::Tensor bias = linear->named_parameters()["bias"];
  weight.requires_grad_(false);
  linear->forward(input_of(options, 2).detach()).sum().backward();  // a first layer
  CHECK(!weight.grad().defined());
  CHECK(at::equal(bias.grad(), at::full({4}, 4.0)));  // 2 x 2 rows
  bias.requires_grad_(false);
  const at::Tensor frozen = linear->forward(input_of(options, 2).detach());
  CHECK(!frozen.requires_grad());
  CHECK(at::equal(frozen, layer_of(options)->forward(input_of(options, 2))));
  const at::NoGradGuard no_grad;
  CHECK(!linear->forward(input_of(options, 2)).requires_grad());
}

}  // namespace scaletrain::engine
