// Compressed gradients between replicas whose ranks hold a model in parts.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "lib/parallel/sharded.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using parallel::Pass;
using parallel::Sharded;
using Tensors = std::map<std::string, at::Tensor>;

struct CompressCase {
  std::string name;
  double most;       // that gradients are off
  bool left_out;     // the update
  std::size_t kept;  // tensors of what was not sent
};

// Two units of other sizes: a matrix and a vector, and a matrix.
Tensors zeros() {
  Tensors tensors{{"a", at::zeros({6, 7})}, {"b", at::zeros({9})}, {"c", at::zeros({20, 5})}};
  for (const auto& [name, tensor] : tensors) tensor.requires_grad_(true);
  return tensors;
}

// Of a loss that is the sum of parameters times these: other ones for each rank.
at::Tensor factors_of(const at::Tensor& parameter, int rank) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(10 * parameter.numel() + rank);
  return at::randn(parameter.sizes(), generator);
}

// "" where gradients are the mean over all ranks, nearly, and what was not sent is kept.
std::string after_steps(const CompressCase& one, const core::WorkerEnv& env) {
  at::set_num_threads(1);
  dist::Group world(env, at::kCPU, std::chrono::seconds(30));
  dist::Mesh mesh(world, core::MeshPlan(4, {.replica = {}, .shard = 2}));
  const Tensors tensors = zeros();
  std::vector<units::NamedParameter> named;
  for (const auto& [name, tensor] : tensors) named.push_back({.name = name, .tensor = tensor});
  Sharded sharded(named, mesh,
                  {.level = parallel::ShardLevel::kGradients, .units = {{"a", "b"}, {"c"}}},
                  {.compress = recipe::Compress{.name = one.name}});
  sharded.start({});
  std::string wrong;
  for (int step = 0; step < 2; ++step) {
    sharded.begin_step(step);
    sharded.zero_grad();
    sharded.begin_micro_step(/*synchronize=*/true);
    at::Tensor loss = at::zeros({});
    for (const auto& [name, tensor] : tensors) {
      loss = loss + (tensor * factors_of(tensor, env.rank)).sum();
    }
    sharded.prepare_backward(loss);
    loss.backward();
    for (const std::size_t unit : {1, 0}) sharded.leave(unit, Pass::kBackward);
    sharded.end_backward();
    for (const units::NamedParameter& part : sharded.owned()) {
      at::Tensor mean = at::zeros_like(tensors.at(part.name));
      for (int rank = 0; rank < 4; ++rank) mean += factors_of(mean, rank) / 4;
      const at::Tensor own = mean.view({-1}).narrow(0, part.begin, part.tensor.numel());
      const double off = (part.tensor.grad().view({-1}) - own).abs().max().item<double>();
      if (off > one.most) wrong += fmt::format("{} is off by {}; ", part.name, off);
    }
    sharded.end_step(at::full({}, one.left_out ? 1 : 0));
  }
  const auto kept = local_tensors(sharded.state());
  if (kept.size() != one.kept) wrong += fmt::format("{} tensors are kept; ", kept.size());
  for (const auto& [name, tensor] : kept) {
    // The errors of a step that was left out are those from before it.
    if ((tensor.abs().max().item<double>() > 0) == one.left_out) wrong += name + "; ";
  }
  mesh.end("the end");
  return wrong;
}

TEST_CASE("parts of gradients are exchanged in fewer bytes, and what was not sent is kept") {
  // A vector travels as it is.
  const std::vector<CompressCase> cases{{"bf16", 0.02, false, 0},
                                        {"int8", 0.2, false, 2},
                                        {"int8", 0.2, true, 2},
                                        {"onebit", 4, false, 2}};
  for (const CompressCase& one : cases) {
    CAPTURE(one.name);
    for (const auto& result :
         testing::run_ranks({.world_size = 4},
                            [&](const core::WorkerEnv& env) { return after_steps(one, env); })) {
      CHECK(result.text == "");
      CHECK(result.status == 0);
    }
  }
}

}  // namespace
