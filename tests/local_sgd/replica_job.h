// A replica of a few small parameters, that learns something known in each step.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/local_sgd/weight_sync.h"

namespace scaletrain::testing {

inline constexpr std::int64_t kReplicaElements = 24 + 8 + 32 + 4;

inline std::vector<units::NamedParameter> replica_parameters() {
  std::vector<units::NamedParameter> result;
  const std::vector<std::vector<std::int64_t>> shapes{{8, 3}, {8}, {4, 8}, {4}};
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
  for (const auto& shape : shapes) {
    result.push_back({.name = fmt::format("p{}", result.size()),
                      .tensor = at::randn(shape, generator).requires_grad_(true)});
  }
  return result;
}

// What a replica learns alone in one step.
inline at::Tensor learned(const at::Tensor& weights, int rank, int step) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1000 * step + rank);
  return weights * 0.99 + at::randn(weights.sizes(), generator) * 0.01;
}

inline void learn(const std::vector<units::NamedParameter>& all, int rank, int step) {
  for (const auto& parameter : all) {
    const at::Tensor weights = parameter.tensor.detach();
    weights.copy_(learned(weights, rank, step));
  }
}

struct ReplicaJob {
  ReplicaJob(const core::WorkerEnv& env, const recipe::Sync& sync, std::int64_t total_steps = 1000,
             std::optional<at::ScalarType> rounded_to = std::nullopt)
      : group(env, at::kCPU, std::chrono::seconds(30)),
        mesh(group, core::MeshPlan(env.world_size)),
        all(replica_parameters()),
        exchange(sync, all, local_sgd::divide_in_fragments(all, sync.fragments), group, total_steps,
                 rounded_to) {
    at::set_num_threads(1);
    exchange.start();
  }

  dist::Group group;
  dist::Mesh mesh;
  std::vector<units::NamedParameter> all;
  local_sgd::WeightSync exchange;
};

}  // namespace scaletrain::testing
