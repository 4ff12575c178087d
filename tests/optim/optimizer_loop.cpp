// What an update costs, for scripts/bench/optimizer_step.py:
//   optimizer_loop RECIPE SHAPES ROUNDS THREADS
// SHAPES are "COUNTxROWSxCOLUMNS,...". Prints JSON: the median seconds of the recipe's optimizer's
// step, of a running mean of the parameters, and of a copy of them.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/optim/mean.h"
#include "lib/optim/optimizer.h"
#include "lib/recipe/load.h"

namespace scaletrain {
namespace {

std::vector<optim::NamedParameter> make_parameters(const std::string& shapes) {
  std::vector<optim::NamedParameter> result;
  std::istringstream stream(shapes);
  std::int64_t count = 0, rows = 0, columns = 0;
  char separator = 0;
  while (stream >> count >> separator >> rows >> separator >> columns) {
    for (std::int64_t i = 0; i < count; ++i) {
      at::Tensor tensor = at::randn({rows, columns}).mul_(0.02).requires_grad_(true);
      tensor.mutable_grad() = at::randn({rows, columns}).mul_(1e-3);
      result.push_back({.name = fmt::format("p{}", result.size()), .tensor = tensor});
    }
    stream >> separator;
  }
  return result;
}

// Of `rounds` calls, after two that are not counted.
double median_s(int rounds, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < rounds + 2; ++i) {
    const core::SteadyTime begin = core::now();
    call();
    times.push_back(std::chrono::duration<double>(core::now() - begin).count());
  }
  times.erase(times.begin(), times.begin() + 2);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure(const std::string& recipe_path, const std::string& shapes, int rounds) {
  const recipe::Recipe recipe = recipe::load_recipe(recipe_path);
  const std::vector<optim::NamedParameter> parameters = make_parameters(shapes);
  std::map<std::string, at::Tensor> model;
  std::vector<at::Tensor> tensors, copies;
  for (const optim::NamedParameter& parameter : parameters) {
    const at::Tensor tensor = parameter.tensor.detach();
    model.emplace(parameter.name, tensor);
    tensors.push_back(tensor);
    copies.push_back(tensor.clone());
  }
  const at::Tensor found_inf = at::zeros({});
  double step_s = 0;
  {
    const auto optimizer = optim::make_optimizer(recipe.optimizer, parameters);
    step_s = median_s(rounds, [&] { optimizer->step(recipe.optimizer.lr, found_inf); });
  }
  optim::Mean ema({.decay = 0.9999}, units::full_shards(model));
  const double ema_s = median_s(rounds, [&] { ema.update(0, found_inf); });
  const double copy_s = median_s(rounds, [&] { at::_foreach_copy_(copies, tensors); });
  fmt::print("{{\"step_s\": {}, \"ema_s\": {}, \"copy_s\": {}}}\n", step_s, ema_s, copy_s);
}

}  // namespace
}  // namespace scaletrain

int main(int count, char** arguments) {
  if (count != 5) return 2;
  try {
    at::set_num_threads(std::stoi(arguments[4]));
    scaletrain::measure(arguments[1], arguments[2], std::stoi(arguments[3]));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", scaletrain::core::describe(error));
    return 1;
  }
}
