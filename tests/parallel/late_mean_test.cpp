#include "lib/parallel/late_mean.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

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

}  // namespace

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
