#include "lib/engine/training_context.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>

#include "lib/nn/model.h"
#include "lib/recipe/catalog/lists.h"
#include "tests/dist/ranks.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSamples = 8;

std::shared_ptr<nn::Model> make_net(const std::string& norm) {
  recipe::Model model;
  recipe::choose(model, *recipe::models().find("mobilenet_v3_small"));
  model.num_classes = 10;
  model.options["norm"] = norm;
  model.options["dropout"] = 0.0;
  auto net = nn::make_model(model, 32, 1);
  net->to(at::kDouble);  // a net of many norms multiplies what fp32 rounds
  return net;
}

struct Samples {
  Samples() {
    torch::manual_seed(5);
    images = torch::randn({kSamples, 3, 32, 32}, at::kDouble);
    factors = torch::randn({kSamples, 10}, at::kDouble);
  }
  at::Tensor images, factors;
};

// Adds the gradients of these samples' share of the loss to the parameters'.
void add_gradients(nn::Model& net, const units::Context& context, std::int64_t begin,
                   std::int64_t count) {
  const Samples samples;
  const at::Tensor logits =
      units::run(net.units(), {samples.images.narrow(0, begin, count)}, context).front();
  (logits * samples.factors.narrow(0, begin, count)).sum().backward();
}

// Largest difference of a tensor of `ours` from that of `theirs`, over the largest of theirs. Some
// gradients are zero but for rounding: a shift before BatchNorm changes nothing.
double largest_difference(nn::Model& ours, nn::Model& theirs) {
  constexpr double kZero = 1e-6;
  double worst = 0;
  const auto compare = [&](const at::Tensor& actual, const at::Tensor& expected) {
    const double far = (actual - expected).abs().max().item<double>();
    worst = std::max(worst, far / std::max(kZero, expected.abs().max().item<double>()));
  };
  const auto gradients = theirs.named_parameters();
  for (const auto& item : ours.named_parameters()) {
    compare(item.value().grad(), gradients[item.key()].grad());
  }
  const auto buffers = theirs.named_buffers();
  for (const auto& item : ours.named_buffers()) {
    if (item.key().ends_with("num_batches_tracked")) continue;
    compare(item.value(), buffers[item.key()]);
  }
  return worst;
}

// Of two ranks with half of the samples each from one with all of them and BatchNorm.
double difference_on_two_ranks(const core::WorkerEnv& env, const std::string& norm) {
  at::set_num_threads(1);  // two ranks share what cores there are
  dist::Group group(env, at::kCPU, 30s);
  const auto net = make_net(norm), whole = make_net("batch");
  add_gradients(*net, training_context({}, group), group.rank() * kSamples / 2, kSamples / 2);
  for (const at::Tensor& parameter : net->parameters()) {
    group.all_reduce_sum(parameter.grad(), "gradient").wait();
  }
  add_gradients(*whole, {}, 0, kSamples);
  group.end("end");
  return largest_difference(*net, *whole);
}

}  // namespace

TEST_CASE("SyncBatchNorm on two ranks equals one rank with the double batch; BatchNorm does not") {
  const auto results = testing::run_ranks({}, [](const core::WorkerEnv& env) {
    const double sync = difference_on_two_ranks(env, "sync_batch");
    return std::string(sync < 1e-9 ? "equal" : fmt::format("off by {}", sync));
  });
  for (const auto& result : results) CHECK(result.text == "equal");
  const auto apart = testing::run_ranks({}, [](const core::WorkerEnv& env) {
    return std::string(difference_on_two_ranks(env, "batch") > 1e-3 ? "apart" : "equal");
  });
  for (const auto& result : apart) CHECK(result.text == "apart");
}

TEST_CASE("micro-batches with GroupNorm add up to the gradients of the whole batch") {
  for (const auto& [norm, is_equal] : {std::pair{"group", true}, std::pair{"batch", false}}) {
    const std::string name = norm;
    CAPTURE(name);
    const auto net = make_net(norm), whole = make_net(norm);
    for (std::int64_t begin = 0; begin < kSamples; begin += 2) add_gradients(*net, {}, begin, 2);
    add_gradients(*whole, {}, 0, kSamples);
    const double difference = largest_difference(*net, *whole);
    CHECK((difference < 1e-9) == is_equal);
  }
}

TEST_CASE("what a step counts is summed over other tokens and stages, not over parts of layers") {
  using core::MeshSizes;
  const std::pair<MeshSizes, std::vector<double>> meshes[] = {
      {{.pipe = 2, .replica = {}}, {15, 15, 15, 15}},
      {{.replica = {}, .context = 2}, {15, 15, 15, 15}},
      {{.replica = {}, .tensor = 2}, {5, 10, 5, 10}},
      {{.replica = {}, .tensor = 4}, {1, 2, 4, 8}},
  };
  const auto results = testing::run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    std::string text;
    int number = 0;
    for (const auto& [sizes, sums] : meshes) {
      dist::Group all(world, {0, 1, 2, 3}, fmt::format("mesh {}", number++));
      const dist::Mesh mesh(all, core::MeshPlan(4, sizes));
      const at::Tensor own = at::full({2}, 1 << env.rank, at::kDouble);
      const auto sum = sum_of_step(mesh);
      if (static_cast<bool>(sum) != (mesh.size(core::Axis::kTensor) < 4)) text += "empty? ";
      if (sum) sum(own);
      const double expected = sums[static_cast<std::size_t>(env.rank)];
      if (!own.eq(expected).all().item<bool>()) text += fmt::format("{} ", own[0].item<double>());
    }
    world.end("end");
    return text;
  });
  for (const auto& result : results) CHECK(result.text == "");
}

TEST_CASE("one rank alone sums nothing") {
  dist::Group alone(core::WorkerEnv(), at::kCPU, 1s);
  CHECK_FALSE(training_context({}, alone).sum_over_ranks);
}

}  // namespace scaletrain::engine
