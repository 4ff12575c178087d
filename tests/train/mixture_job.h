// A small mixture of experts as a run lays it out on any mesh, without its data.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/parallel/context_attention.h"
#include "lib/train/build/build.h"
#include "lib/train/run/stages.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::testing {

constexpr std::int64_t kMixtureMicroSteps = 2, kMixtureTokens = 16;

struct MixtureCase {
  const char* name;
  std::map<std::string, recipe::Component::Value> options = {};
  bool recomputes = false;
  bool is_skewed = false;  // all tokens go to the first experts
  std::int64_t chunk = 0;
};

inline recipe::Recipe recipe_of(const MixtureCase& one, const recipe::Parallel& parallel = {}) {
  recipe::Recipe recipe = recipe_of_model("mixtral", {{"vocab_size", std::int64_t{11}},
                                                      {"positions", kMixtureTokens},
                                                      {"dim", std::int64_t{16}},
                                                      {"depth", std::int64_t{3}},
                                                      {"heads", std::int64_t{4}},
                                                      {"hidden", std::int64_t{24}},
                                                      {"experts", std::int64_t{4}}});
  for (const auto& [key, value] : one.options) recipe.model.options.at(key) = value;
  recipe.seed = 1;
  recipe.data.context = kMixtureTokens;
  recipe.loss.chunk = one.chunk;
  recipe.parallel = parallel;
  if (one.recomputes) recipe.recompute.emplace().units = "all";
  return recipe;
}

// Copies `gradient` of `own` to its places in `whole`.
inline void put_gradient(const units::NamedParameter& own, const at::Tensor& whole) {
  copy_to_full(own.state(own.tensor.grad()), whole);
}

// A case as a run lays it out, without its data.
class MixtureJob {
 public:
  MixtureJob(const MixtureCase& one, const recipe::Parallel& parallel,
             std::unique_ptr<dist::Group> group) {
    run_.recipe = recipe_of(one, parallel);
    run_.group = std::move(group);
    run_.mesh = std::make_unique<dist::Mesh>(
        *run_.group, core::MeshPlan(run_.group->world_size(), parallel.mesh()));
    run_.task = task::make_task(run_.recipe, at::kCPU);
    run_.learner =
        train::build_learner(run_.recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1}, 1,
                             nn::built_in_factories(), run_.mesh.get());
    nn::Model& model = *run_.learner.model;
    if (one.is_skewed) {
      for (const auto& item : model.named_buffers()) item.value()[0].fill_(100);
    }
    for (const units::NamedParameter& own : run_.learner.parameters()) {
      shapes_[own.name] = own.shape();
    }
    train::place(run_);
    run_.placement->start({});
    train::drop_other_stages(run_);
    model.train();
    if (parallel.context == 1) return;
    auto ring = std::make_shared<dist::Ring>(dist::open_ring(*run_.mesh, core::Axis::kContext));
    cut_ = parallel::token_cut(std::move(ring));
  }

  // This rank's of the `all` micro-batches of each micro-step.
  void step(int step, std::int64_t all) {
    const int readers = readers_of_step();
    std::vector<task::Example> examples;
    for (std::int64_t block = 0; block < kMixtureMicroSteps * all; ++block) {
      if (block % readers == run_.mesh->reader()) examples.push_back(example(step, block));
    }
    SameBatches batches(examples);
    const double ranks = run_.mesh->gradients().world_size();
    loss = at::zeros({}, at::kDouble);
    run_.engine->run(step, batches, at::full({}, 0.02 * ranks / static_cast<double>(all)),
                     [&](const at::Tensor& sum) {
                       if (run_.mesh->counts_losses()) loss = sum.clone();
                     });
    run_.mesh->world().all_reduce_sum(loss, "loss").wait();
    norm = run_.engine->squared_norm().sqrt().item<double>();
  }

  // The model's statistics of the step.
  at::Tensor update() {
    const at::NoGradGuard no_grad;
    for (const units::NamedParameter& one : run_.engine->owned()) {
      one.tensor.detach().sub_(one.tensor.grad(), 0.05);
    }
    run_.engine->weights_changed();
    return run_.engine->end_step(at::zeros({}));
  }

  // Whole, by name, on each rank.
  std::map<std::string, at::Tensor> gradients() const {
    std::map<std::string, at::Tensor> result;
    for (const auto& [name, shape] : shapes_) result[name] = at::zeros(shape);
    for (const units::NamedParameter& one : run_.engine->owned()) {
      if (one.counts) put_gradient(one, result.at(one.name));
    }
    for (auto& [name, gradient] : result) {
      run_.mesh->model().all_reduce_sum(gradient, "test").wait();
    }
    return result;
  }

  // The sums of two batches, of which alone a rank has both, and of four readers two have none.
  at::Tensor evaluate() {
    const at::NoGradGuard no_grad;
    const at::Tensor sums = at::zeros({run_.task->sum_count()}, at::kDouble);
    run_.learner.model->eval();
    const int readers = readers_of_step();
    for (int batch = run_.mesh->reader(); batch < 2; batch += readers) {
      const at::Tensor own = run_.engine->evaluate(example(100, batch)).sums;
      if (run_.mesh->counts_losses()) sums.add_(own);
    }
    if (run_.mesh->reader() >= 2 && run_.engine->runs_with_others()) run_.engine->accompany();
    run_.learner.model->train();
    run_.mesh->world().all_reduce_sum(sums, "sums").wait();
    return sums;
  }

  // Bytes of the model's parameters.
  std::int64_t bytes() const {
    std::size_t bytes = 0;
    for (const at::Tensor& parameter : run_.learner.model->parameters()) {
      bytes += parameter.storage().nbytes();
    }
    return static_cast<std::int64_t>(bytes);
  }

  int readers_of_step() const { return run_.mesh->plan().readers(); }
  void end() { run_.mesh->end("the end"); }

  at::Tensor loss;
  double norm = 0;

 private:
  task::Example example(int step, std::int64_t block) const {
    const auto seed = static_cast<std::uint64_t>(1000 * step + block);
    const task::Example whole = example_of(run_.recipe, 2, seed);
    if (!cut_) return whole;
    const at::Tensor places = cut_->places(kMixtureTokens);
    return {.input = whole.input.index_select(1, places),
            .target = whole.target.index_select(1, places),
            .context = {
                .positions = places.unsqueeze(0), .places = places, .attend = cut_->attention({})}};
  }

  train::Run run_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::optional<units::TokenCut> cut_;  // of sequences that ranks share
};

}  // namespace scaletrain::testing
