// The running mean of weights, clipping and SAM on given tensors, which regularisation_test.py does
// with timm's and PyTorch's:
//   regularisation_program mean RECIPE MODELS OUT: MODELS has each tensor of the model [steps, ...]
//     and "found_inf" [steps]; the recipe's ema or swa begins with the first and is updated with
//     each;
//   regularisation_program clip RECIPE PARAMETERS GRADIENTS OUT: of the head is what "head."
//   begins; regularisation_program sam RECIPE PARAMETERS INPUTS OUT: steps of SGD on the loss
//   below.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/optim/clip.h"
#include "lib/optim/mean.h"
#include "lib/optim/norm.h"
#include "lib/optim/sam.h"
#include "lib/recipe/load.h"
#include "tests/parity/tensor_files.h"

namespace scaletrain {
namespace {

using parity::read_tensors;
using parity::Tensors;
using parity::write_tensors;

void average(const recipe::Recipe& recipe, const std::string& input, const std::string& out) {
  Tensors steps = read_tensors(input);
  const at::Tensor found_inf = steps.extract("found_inf").mapped();
  Tensors model;
  for (const auto& [name, tensor] : steps) model[name] = tensor[0].clone();
  optim::MeanPlan plan;
  if (recipe.ema) {
    plan = {.decay = recipe.ema->decay.front(),
            .warmup = recipe.ema->warmup,
            .every = recipe.ema->every};
  } else {
    plan = {.start = std::llround(recipe.swa->start->value),
            .every = std::llround(recipe.swa->every.value)};
  }
  optim::Mean mean(plan, units::full_shards(model));
  for (std::int64_t step = 0; step < found_inf.size(0); ++step) {
    for (const auto& [name, tensor] : model) tensor.copy_(steps.at(name)[step]);
    mean.update(step, found_inf[step]);
  }
  write_tensors(out, local_tensors(mean.state()));
}

std::vector<units::NamedParameter> named(const Tensors& parameters) {
  std::vector<units::NamedParameter> result;
  for (const auto& [name, tensor] : parameters) {
    tensor.requires_grad_(true);
    result.push_back({.name = name, .tensor = tensor, .is_head = name.starts_with("head.")});
  }
  return result;
}

void clip(const recipe::Recipe& recipe, const std::string& parameters_file,
          const std::string& gradients_file, const std::string& out) {
  const Tensors parameters = read_tensors(parameters_file);
  const Tensors gradients = read_tensors(gradients_file);
  std::vector<at::Tensor> list;
  for (const auto& [name, tensor] : parameters) {
    tensor.requires_grad_(true);
    tensor.mutable_grad() = gradients.at(name);
    list.push_back(gradients.at(name));
  }
  optim::clip(*recipe.clip, named(parameters), list, optim::squared_norm(list).sqrt());
  write_tensors(out, gradients);
}

void ascend(const recipe::Recipe& recipe, const std::string& parameters_file,
            const std::string& inputs_file, const std::string& out) {
  const Tensors parameters = read_tensors(parameters_file);
  const at::Tensor inputs = read_tensors(inputs_file).at("inputs");  // [steps, samples, width]
  const std::vector<units::NamedParameter> list = named(parameters);
  optim::Sam sam(*recipe.sam, list);
  const auto backward = [&](const at::Tensor& batch) {
    std::vector<at::Tensor> gradients;
    for (const units::NamedParameter& one : list) one.tensor.mutable_grad().reset();
    const at::Tensor hidden = at::tanh(at::linear(batch, parameters.at("weight")));
    (hidden * parameters.at("scale") + parameters.at("bias")).square().mean().backward();
    for (const units::NamedParameter& one : list) gradients.push_back(one.tensor.grad());
    return gradients;
  };
  for (std::int64_t step = 0; step < inputs.size(0); ++step) {
    const std::vector<at::Tensor> gradients = backward(inputs[step]);
    sam.weigh();
    sam.ascend(optim::squared_norm(gradients).sqrt());
    backward(inputs[step]);
    sam.descend();
    const at::NoGradGuard no_grad;
    for (const units::NamedParameter& one : list) {
      at::Tensor weight = one.tensor;
      weight.sub_(weight.grad(), recipe.optimizer.lr);
    }
  }
  write_tensors(out, parameters);
}

int run(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  if (arguments.size() < 2) return 2;
  const recipe::Recipe recipe = recipe::load_recipe(arguments[1]);
  if (command == "mean" && arguments.size() == 4) {
    average(recipe, arguments[2], arguments[3]);
  } else if (command == "clip" && arguments.size() == 5) {
    clip(recipe, arguments[2], arguments[3], arguments[4]);
  } else if (command == "sam" && arguments.size() == 5) {
    ascend(recipe, arguments[2], arguments[3], arguments[4]);
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace scaletrain

int main(int count, char** arguments) {
  try {
    return scaletrain::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", scaletrain::core::describe(error));
    return static_cast<int>(scaletrain::core::exit_code_of(error));
  }
}
