// A replica of a few small parameters, that learns something known in each step.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/local_sgd/make_replicas.h"

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
  // `options.sync` and what differs from the defaults; decoupled replicas begin at step `begin`.
  // `sizes`: mesh of a job whose replicas have several ranks.
  ReplicaJob(const core::WorkerEnv& env, local_sgd::LocalSgdOptions options, bool decoupled = false,
             std::int64_t begin = 0, const core::MeshSizes& sizes = {})
      : group(env, at::kCPU, std::chrono::seconds(30)),
        mesh(group, core::MeshPlan(env.world_size, sizes)),
        all(replica_parameters()) {
    at::set_num_threads(1);
    if (options.total_steps == 0) options.total_steps = 1000;
    options.decoupled = decoupled;
    if (!options.states) {
      options.states = [](local_sgd::StateRequest) {
        return std::vector<std::pair<std::string, at::Tensor>>();
      };
    }
    const auto fragments = local_sgd::divide_in_fragments(all, options.sync.fragments);
    replicas = local_sgd::make_replicas(std::move(options), all, fragments, mesh);
    replicas->start();
    replicas->decouple(begin, [] { return "127.0.0.1"; });
  }

  // Sets all weights.
  void fill(double value) const {
    for (const auto& parameter : all) parameter.tensor.detach().fill_(value);
  }
  double weight() const { return all.front().tensor.detach()[0][0].item<double>(); }

  // The sum of all weights, bit for bit.
  std::string sum() const {
    double sum = 0;
    for (const auto& parameter : all) sum += parameter.tensor.detach().sum().item<double>();
    return fmt::format("{:a}", sum);
  }

  dist::Group group;
  dist::Mesh mesh;
  std::vector<units::NamedParameter> all;
  std::unique_ptr<local_sgd::Replicas> replicas;
};

}  // namespace scaletrain::testing
