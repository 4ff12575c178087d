// Steps of a scaled loss, which precision_test.py does with torch.amp.GradScaler:
//   precision_program RECIPE INPUTS OUT: INPUTS has "weight" [n] and "gradients" [steps, n], those
//   of the loss that was not scaled; OUT gets "weights" [steps, n] after each step, and "scales"
//   and "trackers" [steps].
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/optim/clip.h"
#include "lib/optim/norm.h"
#include "lib/optim/optimizer.h"
#include "lib/precision/precision.h"
#include "lib/recipe/load.h"
#include "tests/parity/tensor_files.h"

int main(int count, char** arguments) {
  using namespace scaletrain;
  if (count != 4) return 2;
  try {
    const recipe::Recipe recipe = recipe::load_recipe(arguments[1]);
    const parity::Tensors inputs = parity::read_tensors(arguments[2]);
    const at::Tensor weight = inputs.at("weight").clone().requires_grad_(true);
    const at::Tensor& gradients = inputs.at("gradients");
    const auto precision = precision::make_precision(recipe.precision, {});
    const auto optimizer =
        optim::make_optimizer(recipe.optimizer, {{.name = "weight", .tensor = weight}});
    std::vector<at::Tensor> weights;
    std::vector<double> scales, trackers;
    for (std::int64_t step = 0; step < gradients.size(0); ++step) {
      weight.mutable_grad().reset();
      precision->scale((weight * gradients[step]).sum()).backward();
      precision->unscale({weight.grad()});
      const at::Tensor found_inf = optim::not_finite({optim::squared_norm({weight.grad()}).sqrt()});
      optimizer->step(recipe.optimizer.lr, found_inf);
      precision->update(found_inf);
      weights.push_back(weight.detach().clone());
      scales.push_back(precision->state().at("scale").item<double>());
      trackers.push_back(precision->state().at("growth_tracker").item<double>());
    }
    parity::write_tensors(arguments[3], {{"weights", at::stack(weights)},
                                         {"scales", at::tensor(scales, at::kDouble)},
                                         {"trackers", at::tensor(trackers, at::kDouble)}});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
