// A model and a task by their names, trained by an engine of one rank.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"

namespace scaletrain::testing {

// A recipe of the model `name` with these of its keys, for 32x32 images of 10 classes or tokens.
inline recipe::Recipe recipe_of_model(
    const std::string& name, const std::map<std::string, recipe::Component::Value>& options = {}) {
  recipe::Recipe recipe = recipe::blank_recipe();
  const recipe::Row& row = *recipe::models().find(name);
  recipe::choose(recipe.model, row);
  recipe.model.num_classes = 10;
  recipe.task = row.task;
  recipe.data.image_size = 32;
  for (const auto& [key, value] : options) recipe.model.options.at(key) = value;
  return recipe;
}

// Hands out the same batches each time.
class SameBatches : public engine::MicroBatches {
 public:
  explicit SameBatches(const std::vector<task::Example>& examples) : examples_(examples) {}
  std::int64_t count() const override { return static_cast<std::int64_t>(examples_.size()); }
  task::Example next() override { return examples_.at(next_++); }

 private:
  const std::vector<task::Example>& examples_;
  std::size_t next_ = 0;
};

struct OneRank {
  explicit OneRank(const recipe::Recipe& recipe)
      : OneRank(recipe, nn::make_model(recipe.model, recipe.data.image_size, 1)) {}
  OneRank(const recipe::Recipe& recipe, std::shared_ptr<nn::Model> trained)
      : model(std::move(trained)),
        task(task::make_task(recipe, at::kCPU)),
        precision(precision::make_precision(recipe.precision, {.avx512 = true})),
        placement(parallel::make_placement(parameters(), mesh)),
        engine({*model, *task, *precision, *placement, mesh}, /*seed=*/3,
               {.recompute = recipe.recompute,
                .chunk = recipe.loss.chunk,
                .offload = recipe.offload && recipe.offload->activations}) {
    at::set_num_threads(1);  // the models are small
    model->train();
  }

  // Step number `step` over `examples`: the gradients of all trained parameters, and the buffers.
  std::vector<at::Tensor> step(std::int64_t step, const std::vector<task::Example>& examples) {
    SameBatches batches(examples);
    engine.run(step, batches, at::full({}, 0.5),
               [this](const at::Tensor& sum) { loss = sum.item<double>(); });
    std::vector<at::Tensor> result;
    for (const at::Tensor& gradient : engine.gradients()) result.push_back(gradient.clone());
    for (const at::Tensor& buffer : model->buffers()) result.push_back(buffer.clone());
    return result;
  }

  std::vector<units::NamedParameter> parameters() const {
    std::vector<units::NamedParameter> result;
    for (const auto& item : model->named_parameters()) {
      if (item.value().requires_grad()) result.push_back({item.key(), item.value()});
    }
    return result;
  }

  std::shared_ptr<nn::Model> model;
  std::unique_ptr<task::Task> task;
  std::unique_ptr<precision::Precision> precision;
  dist::Group group{core::WorkerEnv(), at::kCPU, std::chrono::seconds(1)};
  dist::Mesh mesh{group, core::MeshPlan(1)};
  std::unique_ptr<parallel::Placement> placement;
  engine::Engine engine;
  double loss = 0;  // the sum over the last step
};

// `samples` of what the recipe's model reads and learns, drawn by `seed`.
inline task::Example example_of(const recipe::Recipe& recipe, std::int64_t samples,
                                std::uint64_t seed) {
  at::manual_seed(seed);
  if (!recipe::reads_tokens(recipe.model)) {
    return {.input = at::randn({samples, 3, recipe.data.image_size, recipe.data.image_size}),
            .target = at::randint(recipe.model.num_classes, {samples}, at::kLong)};
  }
  const std::int64_t vocabulary = recipe.model.integer("vocab_size");
  const std::vector<std::int64_t> shape{samples, recipe.model.integer("positions")};
  return {.input = at::randint(vocabulary, shape, at::kLong),
          .target = at::randint(vocabulary, shape, at::kLong)};
}

}  // namespace scaletrain::testing
