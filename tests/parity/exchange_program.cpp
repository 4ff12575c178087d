// Steps of data parallelism on given gradients, which exchange_test.py does with PyTorch's
// DistributedDataParallel and its communication hooks:
//   exchange_program COMPRESS GRADIENTS OUT
// one process a rank, with torchrun's variables. COMPRESS is the recipe's key as JSON; GRADIENTS
// has each parameter's [ranks, steps, ...]. OUT gets "mean/PARAMETER" [steps, ...], and as
// "own/NAME" what the rank had of its own before the first step.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"
#include "lib/parallel/data_parallel.h"
#include "tests/parity/tensor_files.h"

namespace scaletrain {
namespace {

using parity::Tensors;

recipe::Compress read_compress(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  recipe::Compress result;
  result.name = json.at("name");
  result.rank = json.value("rank", result.rank);
  result.warmup = json.value("warmup", result.warmup);
  return result;
}

void run(const recipe::Compress& compress, const std::string& input, const std::string& out) {
  at::set_num_threads(1);
  const core::WorkerEnv env = core::read_worker_env();
  dist::Group group(env, at::kCPU, std::chrono::seconds(60), core::Beat(), {},
                    dist::CpuExchange::kGloo);
  const dist::Mesh mesh(group, core::MeshPlan(env.world_size));
  const Tensors gradients = parity::read_tensors(input);
  std::vector<units::NamedParameter> parameters;
  std::int64_t steps = 0;
  for (const auto& [name, all] : gradients) {
    steps = all.size(1);
    parameters.push_back({.name = name, .tensor = at::ones_like(all[0][0]).requires_grad_(true)});
  }
  parallel::DataParallel placement(parameters, mesh, {.compress = compress, .seed = 3});
  placement.start({});
  Tensors result;
  for (const auto& [name, shard] : placement.state()) {
    result["own/" + name] = shard.tensor.clone();
  }
  std::map<std::string, std::vector<at::Tensor>> means;
  for (std::int64_t step = 0; step < steps; ++step) {
    placement.begin_step(step);
    placement.zero_grad();
    placement.begin_micro_step(true);
    at::Tensor loss = at::zeros({});
    for (const auto& parameter : parameters) {
      loss = loss + (parameter.tensor * gradients.at(parameter.name)[env.rank][step]).sum();
    }
    placement.prepare_backward(loss);
    loss.backward();
    placement.end_step(at::zeros({}));
    for (const auto& parameter : parameters) {
      means[parameter.name].push_back(parameter.tensor.grad().clone());
    }
  }
  for (const auto& [name, of_steps] : means) result["mean/" + name] = at::stack(of_steps);
  parity::write_tensors(out, result);
  group.end("the end");
}

}  // namespace
}  // namespace scaletrain

int main(int argc, char** argv) {
  using namespace scaletrain;
  try {
    if (argc != 4) {
      throw core::UsageError("exchange_program", "a wrong number of arguments",
                             "exchange_program COMPRESS GRADIENTS OUT");
    }
    run(read_compress(argv[1]), argv[2], argv[3]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
