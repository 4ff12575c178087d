#include "lib/nn/layers/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <barrier>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/nn/layers/layer_support.h"

namespace scaletrain::nn {
namespace {

// Ranks that are threads of this process: adds up what each of them brings, twice in each pass.
class Sum {
 public:
  explicit Sum(std::ptrdiff_t ranks) : barrier_(ranks) {}
  void operator()(const at::Tensor& values) {
    {
      const std::lock_guard lock(mutex_);
      total_ = total_.defined() ? total_ + values : values.clone();
    }
    barrier_.arrive_and_wait();
    values.copy_(total_);
    barrier_.arrive_and_wait();
    {
      const std::lock_guard lock(mutex_);
      total_ = at::Tensor();
    }
    barrier_.arrive_and_wait();
  }

 private:
  std::mutex mutex_;
  at::Tensor total_;
  std::barrier<> barrier_;
};

struct SyncPass {
  at::Tensor output, input_gradient, weight_gradient, bias_gradient, mean, variance;
};

// Outputs count differently in the loss: by `factors`.
SyncPass sync_pass(BatchNorm& norm, const at::Tensor& values, const at::Tensor& factors,
                   const units::Context& context) {
  const at::Tensor input = values.clone(at::MemoryFormat::Preserve).requires_grad_(true);
  const at::Tensor output = norm.forward(input, context);
  (output * factors).sum().backward();
  const auto parameters = norm.named_parameters(), buffers = norm.named_buffers();
  return {output.detach(),
          input.grad(),
          parameters["weight"].grad(),
          parameters["bias"].grad(),
          buffers["running_mean"],
          buffers["running_var"]};
}

template <class Norm>
std::shared_ptr<Norm> make_norm(const at::Tensor& weight, at::ScalarType type) {
  auto norm = std::make_shared<Norm>(weight.numel(), BatchNorm::Options{});
  const at::NoGradGuard no_grad;
  norm->named_parameters()["weight"].copy_(weight);
  norm->named_parameters()["bias"].fill_(0.5);
  norm->to(type);
  return norm;
}

void check_ranks(std::int64_t ranks, at::ScalarType type, at::MemoryFormat layout, double far) {
  constexpr std::int64_t kEach = 3, kChannels = 4;
  const at::Tensor values =
      (torch::randn({ranks * kEach, kChannels, 5, 5}, type) + far).contiguous(layout);
  const at::Tensor factors = torch::randn_like(values);
  const at::Tensor weight = torch::rand({kChannels}) + 0.5;
  const auto whole = make_norm<BatchNorm>(weight, type);
  const SyncPass expected = sync_pass(*whole, values, factors, {});

  Sum sum(ranks);
  const units::Context context{.sum_over_ranks = [&](const at::Tensor& part) { sum(part); }};
  std::vector<SyncPass> passes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto norm = make_norm<SyncBatchNorm>(weight, type);
      passes[static_cast<std::size_t>(rank)] =
          sync_pass(*norm, values.narrow(0, rank * kEach, kEach),
                    factors.narrow(0, rank * kEach, kEach), context);
    });
  }
  for (std::thread& thread : threads) thread.join();

  const double near = type == at::kDouble ? 1e-12 : 1e-5;
  const auto same = [&](const at::Tensor& ours, const at::Tensor& theirs) {
    return at::allclose(ours, theirs, near, near * (1 + far));
  };
  at::Tensor weight_gradient = at::zeros({kChannels}, type),
             bias_gradient = weight_gradient.clone();
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const SyncPass& pass = passes[static_cast<std::size_t>(rank)];
    CHECK(same(pass.output, expected.output.narrow(0, rank * kEach, kEach)));
    CHECK(same(pass.input_gradient, expected.input_gradient.narrow(0, rank * kEach, kEach)));
    CHECK(same(pass.mean, expected.mean));
    CHECK(same(pass.variance, expected.variance));
    weight_gradient += pass.weight_gradient;
    bias_gradient += pass.bias_gradient;
  }
  CHECK(same(weight_gradient, expected.weight_gradient));
  CHECK(same(bias_gradient, expected.bias_gradient));
}

}  // namespace

TEST_CASE("SyncBatchNorm on several ranks is BatchNorm over all of their samples") {
  torch::manual_seed(1);
  for (const auto layout : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    check_ranks(2, at::kDouble, layout, 0);
    check_ranks(3, at::kDouble, layout, 2);
    check_ranks(2, at::kFloat, layout, 0);
  }
}

TEST_CASE("SyncBatchNorm keeps its digits where the mean is far larger than the deviation") {
  torch::manual_seed(2);
  check_ranks(2, at::kFloat, at::MemoryFormat::Contiguous, 100);
}

TEST_CASE("SyncBatchNorm in evaluation, and without other ranks, is BatchNorm and calls nobody") {
  torch::manual_seed(3);
  const at::Tensor weight = at::ones({4}), values = torch::randn({3, 4, 5, 5});
  const at::Tensor factors = torch::randn_like(values);
  const auto sync = make_norm<SyncBatchNorm>(weight, at::kFloat);
  const auto batch = make_norm<BatchNorm>(weight, at::kFloat);
  CHECK(at::equal(sync_pass(*sync, values, factors, {}).input_gradient,
                  sync_pass(*batch, values, factors, {}).input_gradient));
  sync->eval();
  batch->eval();
  const units::Context context{.sum_over_ranks = [](const at::Tensor&) { FAIL("called"); }};
  CHECK(at::equal(sync->forward(values, context), batch->forward(values, context)));
}

TEST_CASE("SyncBatchNorm with a ReLU asks the other ranks too") {
  torch::manual_seed(6);
  const auto norm = make_norm<SyncBatchNorm>(at::ones({4}), at::kFloat);
  const at::Tensor values = torch::randn({3, 4, 5, 5});
  int calls = 0;
  const units::Context context{.sum_over_ranks = [&](const at::Tensor&) { ++calls; }};
  const at::Tensor output = norm->forward_relu(values, context, values);
  CHECK(calls == 1);
  CHECK(at::equal(output, (norm->forward(values, context) + values).relu()));
}

TEST_CASE("SyncBatchNorm counts its batches, and gives the same without gradients") {
  torch::manual_seed(5);
  const auto norm = make_norm<SyncBatchNorm>(at::ones({4}), at::kFloat);
  const units::Context context{.sum_over_ranks = [](const at::Tensor&) {}};
  const at::Tensor values = torch::randn({3, 4, 5, 5});
  const at::Tensor output = norm->forward(values, context);
  CHECK(norm->named_buffers()["num_batches_tracked"].item<std::int64_t>() == 1);
  const at::NoGradGuard no_grad;
  CHECK(at::equal(norm->forward(values, context), output));
}

TEST_CASE("SyncBatchNorm that runs again moves no statistics") {
  torch::manual_seed(4);
  const auto norm = make_norm<SyncBatchNorm>(at::ones({4}), at::kFloat);
  norm->forward(torch::randn({3, 4, 5, 5}),
                {.again = true, .sum_over_ranks = [](const at::Tensor&) {}});
  CHECK(at::equal(norm->named_buffers()["running_mean"], at::zeros({4})));
  CHECK(norm->named_buffers()["num_batches_tracked"].item<std::int64_t>() == 0);
}

}  // namespace scaletrain::nn
