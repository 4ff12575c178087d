// Assignment of a model's units, and of their tensors, to the stages of a pipeline.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

class Stages {
 public:
  // Divides `units` by their costs (lib/core/plan/stage_division.h). Throws core::RecipeError if
  // there are fewer units than stages.
  Stages(const std::vector<units::Unit>& units, const std::vector<double>& costs, int stages);
  // Takes a division from before: the first unit of each stage, ascending from 0.
  Stages(const std::vector<units::Unit>& units, std::vector<std::size_t> begins);

  int count() const { return static_cast<int>(begins_.size()) - 1; }
  // Units of a stage: [begin, end).
  std::size_t begin(int stage) const { return begins_[static_cast<std::size_t>(stage)]; }
  std::size_t end(int stage) const { return begins_[static_cast<std::size_t>(stage) + 1]; }

  // Stages that use each tensor of the model, ascending.
  const std::map<std::string, std::vector<int>>& tensors() const { return tensors_; }

 private:
  std::vector<std::size_t> begins_;
  std::map<std::string, std::vector<int>> tensors_;
};

// Number of parameter elements of each unit.
std::vector<double> parameter_costs(const std::vector<units::Unit>& units, const nn::Model& model);

}  // namespace scaletrain::engine
