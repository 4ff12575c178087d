#include "lib/parallel/late_mean.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/dist/ranks.h"

namespace scaletrain::parallel {
namespace {

using namespace std::chrono_literals;

// Of two parameters, each of three elements, of which a rank may give the second no gradient.
std::string means_of(dist::Group& group, int count, double first, bool has_second) {
  std::vector<units::NamedParameter> parameters;
  for (const char* const name : {"a", "b"}) {
    parameters.push_back({.name = name, .tensor = at::zeros({3}).requires_grad_()});
  }
  parameters[0].tensor.mutable_grad() = at::full({3}, first);
  if (has_second) parameters[1].tensor.mutable_grad() = at::full({3}, 6.0);
  LateMean mean(parameters, group, count, "means");
  mean.exchange();
  std::string text;
  for (const units::NamedParameter& one : mean.parameters()) {
    const at::Tensor gradient = one.tensor.grad();
    text += gradient.defined() ? fmt::format("{:g} ", gradient[2].item<float>()) : "none ";
  }
  text += std::to_string(mean.exchanged_bytes());
  mean.zero_grad();
  return mean.parameters()[0].tensor.grad().defined() ? "it is still there" : text;
}

// Four steps of compressed means, the first of them plain and the third left out, against the
// exchange that they are made of.
std::string compressed_steps(dist::Group& group) {
  std::vector<units::NamedParameter> parameters{
      {.name = "w", .tensor = at::zeros({2, 300}).requires_grad_()},
      {.name = "b", .tensor = at::zeros({3}).requires_grad_()}};
  const recipe::Compress int8{.name = "int8", .rank = 4, .warmup = 1};
  Compression alone(int8, 3, group);
  alone.add(slots_of(parameters, {0, 1}));
  LateMean mean(parameters, group, 2, "means", std::make_unique<Compression>(int8, 3, group));
  std::string text;
  for (int step = 0; step < 4; ++step) {
    const at::Tensor found_inf = at::full({}, step == 2 ? 1.0 : 0.0);
    const at::Tensor flat = at::arange(603, at::kFloat) * (group.rank() + 1);
    parameters[0].tensor.mutable_grad() = flat.narrow(0, 0, 600).view({2, 300}).clone();
    parameters[1].tensor.mutable_grad() = flat.narrow(0, 600, 3).clone();
    mean.begin_step(step);
    mean.exchange();
    mean.end_step(found_inf);
    alone.begin_step(step);
    BucketExchange& bucket = *alone.exchanges().now->front();
    bucket.begin(flat);
    bucket.go_on();
    bucket.finish();
    alone.end_step(found_inf);
    const at::Tensor got =
        at::cat({parameters[0].tensor.grad().view({-1}), parameters[1].tensor.grad()});
    text += at::equal(got, flat) ? "same " : "differs ";
  }
  return text + (mean.exchanged_bytes() == alone.bytes() ? "bytes" : "other bytes");
}

}  // namespace

TEST_CASE("compressed means are those of the exchange that they are made of") {
  for (const auto& result : testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         dist::Group group(env, at::kCPU, 30s);
         std::string text = compressed_steps(group);
         group.end("the end");
         return text;
       })) {
    CHECK(result.text == "same same same same bytes");
  }
}

TEST_CASE("gradients become the sum over the ranks, divided, and what one lacks counts as zero") {
  for (const auto& result : testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
         dist::Group group(env, at::kCPU, 30s);
         std::string text = means_of(group, 4, 1 + 2 * env.rank, env.rank == 1);
         group.end("the end");
         return text;
       })) {
    CHECK(result.text == "1 1.5 24");
  }
}

TEST_CASE("one rank divides alone, and leaves what is its own already") {
  dist::Group group(core::WorkerEnv{}, at::kCPU, 30s);
  CHECK(means_of(group, 2, 3, false) == "1.5 0 0");
  CHECK(means_of(group, 1, 3, false) == "3 none 0");
}

}  // namespace scaletrain::parallel
