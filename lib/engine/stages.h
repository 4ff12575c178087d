// Which of a model's units each stage of a pipeline has, and with them which tensors.
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
  // Divides `units` by what each costs (lib/core/stage_division.h). Throws core::RecipeError where
  // there are fewer units than stages.
  Stages(const std::vector<units::Unit>& units, const std::vector<double>& costs, int stages);

  int count() const { return static_cast<int>(begins_.size()) - 1; }
  // Its units, from the first on to the one behind its last.
  std::size_t begin(int stage) const { return begins_[static_cast<std::size_t>(stage)]; }
  std::size_t end(int stage) const { return begins_[static_cast<std::size_t>(stage) + 1]; }

  // The stages that use each tensor of the model, ascending.
  const std::map<std::string, std::vector<int>>& tensors() const { return tensors_; }

 private:
  std::vector<std::size_t> begins_;
  std::map<std::string, std::vector<int>> tensors_;
};

// By unit, how many elements its parameters have.
std::vector<double> parameter_costs(const std::vector<units::Unit>& units, const nn::Model& model);

}  // namespace scaletrain::engine
