// One rank of a mesh whose other ranks are simulated (lib/dist/fake/network.h): takes training
// steps with blank weights and batches, without data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/dist/fake/network.h"
#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"
#include "lib/train/run/run.h"
#include "lib/units/token_cut.h"

namespace scaletrain::train {

class FakeRank {
 public:
  // Builds the rank on the CPU. Throws core::RecipeError for a rank that is not the first of a
  // pipeline, since only the previous stage knows the shapes that it sends, and the errors of the
  // layout.
  FakeRank(recipe::Recipe recipe, std::shared_ptr<dist::FakeNetwork> network,
           const nn::Factories& models);

  // Takes an optimizer step.
  void take_step(std::int64_t number);
  // Run::batch may be changed between steps.
  Run& run() { return *run_; }

 private:
  std::unique_ptr<Run> run_;
  std::optional<units::TokenCut> cut_;  // context parallelism
};

}  // namespace scaletrain::train
