// Runs optimizers on given gradients, which optimizers_test.py does with PyTorch's and timm's:
// optimizer_program START [RECIPE GRADIENTS OUT]... START has the parameters; GRADIENTS, for each
// of them, [steps, ...], and "found_inf" [steps]; OUT gets the parameters after the last step, and
// as "evaluated/NAME" those that are evaluated in place of them.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/optim/optimizer.h"
#include "lib/recipe/load.h"
#include "lib/train/rules/parameter_rules.h"
#include "tests/parity/tensor_files.h"

namespace scaletrain {
namespace {

void run(const recipe::Recipe& recipe, const parity::Tensors& parameters,
         const parity::Tensors& gradients, const std::string& out) {
  std::vector<optim::NamedParameter> named;
  named.reserve(parameters.size());
  for (const auto& [name, tensor] : parameters) {
    tensor.requires_grad_(true);
    named.push_back({.name = name, .tensor = tensor});
  }
  train::apply_groups(recipe.optimizer.groups, named);
  const auto optimizer = optim::make_optimizer(recipe.optimizer, named);
  const at::Tensor& found_inf = gradients.at("found_inf");
  for (std::int64_t step = 0; step < found_inf.size(0); ++step) {
    for (const auto& [name, tensor] : parameters) {
      tensor.mutable_grad() = gradients.at(name)[step];
    }
    optimizer->step(recipe.optimizer.lr, found_inf[step]);
  }
  parity::Tensors results = parameters;
  for (const auto& [name, tensor] : optimizer->evaluation_weights()) {
    results.emplace("evaluated/" + name, tensor);
  }
  parity::write_tensors(out, results);
}

}  // namespace
}  // namespace scaletrain

int main(int count, char** arguments) {
  using namespace scaletrain;
  if (count % 3 != 2) return 2;
  try {
    for (int i = 2; i < count; i += 3) {
      run(recipe::load_recipe(arguments[i]), parity::read_tensors(arguments[1]),
          parity::read_tensors(arguments[i + 1]), arguments[i + 2]);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
