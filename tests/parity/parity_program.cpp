// Computes with our models, losses and optimizers what PyTorch, torchvision and timm compute; the
// tests beside this file compare. Tensors go in and out as safetensors.
//
//   parity_program init   RECIPE OUT                  the initial parameters and buffers
//   parity_program shapes RECIPE                      each parameter's and buffer's name and sizes
//   parity_program logits RECIPE WEIGHTS INPUT OUT    eval mode; INPUT holds "inputs", OUT "logits"
//   parity_program gradients RECIPE WEIGHTS BATCH OUT of the mean loss over "inputs", "targets"
//                                                     both take "end_of_text" of packed documents
//   parity_program flops  RECIPE WEIGHTS BATCH        prints the FLOPs of forward and backward of
//   that
//                                                     loss, and of forward again where the batch
//                                                     has "recompute"
//   parity_program train  RECIPE WEIGHTS BATCHES      one optimizer step for each of the "inputs"
//                                                     [steps, batch, ...] and "targets", in the
//                                                     type of the inputs; prints a mean loss a
//                                                     line; a step is left out where "found_inf" is
//                                                     1
//   parity_program loss   [RECIPE INPUT OUT]...       each mean "loss" of "logits" and "targets"
//                                                     with the gradient of "logits"
//   parity_program mix    RECIPE INPUT OUT            the recipe's mix of "images" and "targets",
//                                                     at position 0 of epoch 0; OUT has "pairs"
//                                                     too: own share; box: x, width, y, height
//   parity_program serve                              the commands of stdin (commands.h)
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/engine/recompute.h"
#include "lib/input/documents.h"
#include "lib/input/mix.h"
#include "lib/nn/loss.h"
#include "lib/nn/model.h"
#include "lib/optim/optimizer.h"
#include "lib/recipe/load.h"
#include "lib/units/flop_counter.h"
#include "lib/units/unit.h"
#include "tests/parity/commands.h"
#include "tests/parity/tensor_files.h"

namespace scaletrain {
namespace {

using parity::read_tensors;
using parity::Tensors;
using parity::write_tensors;

Tensors state_of(const nn::Model& model) {
  Tensors result;
  for (const auto& item : model.named_parameters()) result.emplace(item.key(), item.value());
  for (const auto& item : model.named_buffers()) result.emplace(item.key(), item.value());
  return result;
}

std::shared_ptr<nn::Model> initial_model(const recipe::Recipe& recipe) {
  return nn::make_model(recipe.model, recipe.data.image_size, recipe.seed);
}

std::shared_ptr<nn::Model> model_with(const recipe::Recipe& recipe, const std::string& weights) {
  const auto model = initial_model(recipe);
  const Tensors values = read_tensors(weights);
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : state_of(*model)) tensor.copy_(values.at(name));
  return model;
}

// Of the images; tokens have none to compute in.
void compute_in_type_of(const at::Tensor& inputs, nn::Model& model) {
  if (inputs.is_floating_point()) model.to(inputs.scalar_type());
}

void print_shapes(const recipe::Recipe& recipe) {
  for (const auto& [name, tensor] :
       state_of(*nn::make_blank_model(recipe.model, recipe.data.image_size))) {
    fmt::print("{} {}\n", name, fmt::join(tensor.sizes(), ","));
  }
}

// Keeps documents apart where the data names the token that ends them.
units::Context context_of(const Tensors& data) {
  const auto end = data.find("end_of_text");
  if (end == data.end()) return {};
  return input::apart(data.at("inputs"), end->second.item<std::int64_t>());
}

void write_logits(const recipe::Recipe& recipe, const std::string& weights,
                  const std::string& input, const std::string& out) {
  const auto model = model_with(recipe, weights);
  model->eval();
  const at::NoGradGuard no_grad;
  const Tensors data = read_tensors(input);
  compute_in_type_of(data.at("inputs"), *model);
  write_tensors(out, {{"logits", model->forward(data.at("inputs"), context_of(data))}});
}

// Over all targets: one for each sample, or for each token; with the model's auxiliary losses.
at::Tensor mean_loss(const std::vector<units::Unit>& parts, const nn::Loss& loss,
                     const at::Tensor& inputs, const at::Tensor& targets,
                     const units::Context& context = {}) {
  const units::Flow flow = units::run(parts, {inputs}, context);
  at::Tensor mean = loss.sum(flow[0].flatten(0, -2), targets.flatten()) / targets.numel();
  for (std::size_t i = 1; i < flow.size(); ++i) mean = mean + flow[i];
  return mean;
}

void write_gradients(const recipe::Recipe& recipe, const std::string& weights,
                     const std::string& batch, const std::string& out) {
  const auto model = model_with(recipe, weights);
  const Tensors data = read_tensors(batch);
  compute_in_type_of(data.at("inputs"), *model);
  mean_loss(model->units(), *nn::make_loss(recipe.loss, at::kCPU), data.at("inputs"),
            data.at("targets"), context_of(data))
      .backward();
  Tensors gradients;
  for (const auto& item : model->named_parameters()) {
    gradients.emplace(item.key(), item.value().grad());
  }
  write_tensors(out, std::move(gradients));
}

// Backward runs each unit again, as activation checkpointing does.
std::vector<units::Unit> run_again(std::vector<units::Unit> parts) {
  for (units::Unit& one : parts) {
    one.run = [run = one.run](const units::Flow& input, const units::Context& context) {
      const auto once = [run, context](units::Flow given, bool again) {
        units::Context own = context;
        own.again = again;
        return run(std::move(given), own);
      };
      return engine::run_for_recompute(once, input);
    };
  }
  return parts;
}

void print_flops(const recipe::Recipe& recipe, const std::string& weights,
                 const std::string& batch) {
  const auto model = model_with(recipe, weights);
  const Tensors data = read_tensors(batch);
  const auto loss = nn::make_loss(recipe.loss, at::kCPU);
  std::vector<units::Unit> parts = model->units();
  if (data.contains("recompute")) parts = run_again(std::move(parts));
  const units::FlopCounter counter(units::FlopCounter::Threads::kAll);
  mean_loss(parts, *loss, data.at("inputs"), data.at("targets")).backward();
  const units::PassFlops flops = counter.count();
  fmt::print("{:.0f} {:.0f} {:.0f}\n", flops.forward.counted(), flops.backward.counted(),
             flops.recomputed.counted());
}

void print_losses(const recipe::Recipe& recipe, const std::string& weights,
                  const std::string& batches) {
  const auto model = model_with(recipe, weights);
  const Tensors data = read_tensors(batches);
  const at::Tensor &inputs = data.at("inputs"), &targets = data.at("targets");
  compute_in_type_of(inputs, *model);
  const auto loss = nn::make_loss(recipe.loss, at::kCPU);
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : model->named_parameters()) {
    parameters.push_back(
        {.name = item.key(), .tensor = item.value(), .decays = model->decays(item.key())});
  }
  const auto optimizer = optim::make_optimizer(recipe.optimizer, parameters);
  const auto found_inf = data.find("found_inf");
  for (std::int64_t step = 0; step < inputs.size(0); ++step) {
    const at::Tensor mean = mean_loss(model->units(), *loss, inputs[step], targets[step]);
    model->zero_grad();
    mean.backward();
    optimizer->step(recipe.optimizer.lr, found_inf != data.end()
                                             ? std::make_optional(found_inf->second[step])
                                             : std::nullopt);
    fmt::print("{:.9g}\n", mean.item<double>());
  }
}

void write_loss(const recipe::Recipe& recipe, const std::string& input, const std::string& out) {
  const Tensors data = read_tensors(input);
  at::Tensor logits = data.at("logits").requires_grad_();
  const at::Tensor targets = data.at("targets");
  const auto loss = nn::make_loss(recipe.loss, at::kCPU);
  double weight = static_cast<double>(targets.size(0));
  if (!targets.is_floating_point()) {
    weight = loss->weight_of(
        {targets.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(targets.numel())});
  }
  const at::Tensor mean = loss->sum(logits, targets) / weight;
  mean.backward();
  write_tensors(out, {{"loss", mean}, {"gradient", logits.grad()}});
}

void write_mixed(const recipe::Recipe& recipe, const std::string& input, const std::string& out) {
  const Tensors data = read_tensors(input);
  input::ImageTensors batch{.images = data.at("images").contiguous(at::MemoryFormat::ChannelsLast),
                            .targets = data.at("targets")};
  const std::int64_t count = batch.images.size(0), size = batch.images.size(2);
  std::vector<double> pairs;
  for (std::int64_t pair = 0; pair < count / 2; ++pair) {
    const input::PairMix drawn = input::draw_pair(*recipe.mix, size, recipe.seed, 0, pair);
    pairs.push_back(drawn.own);
    for (const data::Range& range : {drawn.box.x, drawn.box.y}) {
      pairs.push_back(static_cast<double>(range.begin));
      pairs.push_back(static_cast<double>(range.size));
    }
  }
  input::Mixer(*recipe.mix, recipe.model.num_classes, recipe.seed).mix(batch, 0, 0);
  write_tensors(out, {{"images", batch.images},
                      {"targets", batch.targets},
                      {"pairs", at::tensor(pairs, at::kFloat).view({count / 2, 5})}});
}

void run(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  if (command == "init" && arguments.size() == 3) {
    write_tensors(arguments[2], state_of(*initial_model(recipe::load_recipe(arguments[1]))));
  } else if (command == "shapes" && arguments.size() == 2) {
    print_shapes(recipe::load_recipe(arguments[1]));
  } else if (command == "logits" && arguments.size() == 5) {
    write_logits(recipe::load_recipe(arguments[1]), arguments[2], arguments[3], arguments[4]);
  } else if (command == "gradients" && arguments.size() == 5) {
    write_gradients(recipe::load_recipe(arguments[1]), arguments[2], arguments[3], arguments[4]);
  } else if (command == "flops" && arguments.size() == 4) {
    print_flops(recipe::load_recipe(arguments[1]), arguments[2], arguments[3]);
  } else if (command == "train" && arguments.size() == 4) {
    print_losses(recipe::load_recipe(arguments[1]), arguments[2], arguments[3]);
  } else if (command == "loss" && arguments.size() % 3 == 1) {
    for (std::size_t i = 1; i < arguments.size(); i += 3) {
      write_loss(recipe::load_recipe(arguments[i]), arguments[i + 1], arguments[i + 2]);
    }
  } else if (command == "mix" && arguments.size() == 4) {
    write_mixed(recipe::load_recipe(arguments[1]), arguments[2], arguments[3]);
  } else {
    throw core::UsageError("parity_program", "unknown command or number of arguments");
  }
}

}  // namespace
}  // namespace scaletrain

int main(int argc, char** argv) {
  return scaletrain::parity::run_commands(argc, argv, scaletrain::run);
}
