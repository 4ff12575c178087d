// Data parallelism of a model of three square layers, for tests.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "lib/core/text/hash.h"
#include "lib/parallel/data_parallel.h"

namespace scaletrain::testing {

using parallel::BucketLayout;
using parallel::DataParallel;

inline constexpr std::chrono::seconds kTimeout(30);
inline constexpr std::int64_t kWidth =
    600;  // 600 x 600 floats are 1.4 MB: more than the first bucket
inline constexpr std::int64_t kLayers = 3;

// Three square layers with biases; the same on every rank.
inline std::vector<at::Tensor> make_parameters() {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  std::vector<at::Tensor> parameters;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    parameters.push_back(at::randn({kWidth, kWidth}, generator).mul_(0.04));
    parameters.push_back(at::zeros({kWidth}));
  }
  for (at::Tensor& parameter : parameters) parameter.requires_grad_(true);
  return parameters;
}

inline std::vector<units::NamedParameter> named(const std::vector<at::Tensor>& parameters) {
  std::vector<units::NamedParameter> result;
  for (const at::Tensor& parameter : parameters) {
    result.push_back({.name = std::to_string(result.size()), .tensor = parameter});
  }
  return result;
}

// `parameters` on a mesh of a job's ranks.
struct Job {
  Job(const core::WorkerEnv& env, const std::vector<at::Tensor>& parameters,
      const BucketLayout& saved = {}, const core::MeshSizes& sizes = {},
      dist::CpuExchange exchange = dist::CpuExchange::kAuto,
      const parallel::GradientExchange& gradients = {})
      : group(env, at::kCPU, kTimeout, core::Beat(), {}, exchange),
        mesh(group, core::MeshPlan(env.world_size, sizes)),
        parallel(named(parameters), mesh, gradients) {
    parallel.start(saved);
  }

  dist::Group group;
  dist::Mesh mesh;
  DataParallel parallel;
};

// The loss on the micro-batch that `rank` has at `micro_step`.
inline at::Tensor loss_of(const std::vector<at::Tensor>& parameters, int rank, int micro_step) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1000 * micro_step + rank);
  at::Tensor value = at::randn({8, kWidth}, generator);
  for (std::size_t i = 0; i < parameters.size(); i += 2) {
    value = at::tanh(at::linear(value, parameters[i], parameters[i + 1]));
  }
  return value.square().mean();
}

inline void micro_step(DataParallel& parallel, const std::vector<at::Tensor>& parameters, int rank,
                       int number, bool synchronize) {
  parallel.begin_micro_step(synchronize);
  const at::Tensor loss = loss_of(parameters, rank, number);
  parallel.prepare_backward(loss);
  loss.backward();
}

inline void update(const std::vector<at::Tensor>& parameters) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters) parameter.detach().sub_(parameter.grad(), 0.1);
}

inline std::string digest(const std::vector<at::Tensor>& tensors) {
  core::Sha256 hash;
  for (const at::Tensor& tensor : tensors) {
    hash.update(std::as_bytes(
        std::span(tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()))));
  }
  return hash.hex();
}

inline std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& parameter : parameters) result.push_back(parameter.grad().contiguous());
  return result;
}

}  // namespace scaletrain::testing
