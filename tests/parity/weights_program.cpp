// Starts our models from weights as a run does; the tests beside this file compare with timm,
// torchvision and transformers. Tensors go in and out as safetensors.
//
//   weights_program load     RECIPE OUT    the model's tensors after /model/weights; prints what
//                                          came of them as weights.json
//   weights_program scales   RECIPE        each trained parameter and its lr_scale
//   weights_program channels IN OUT COUNT  "kernel" for images of COUNT channels
//   weights_program serve                  the commands of stdin (commands.h)
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/checkpoint/adapt.h"
#include "lib/checkpoint/weights.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/exchange/weights_model.h"
#include "lib/recipe/load.h"
#include "lib/train/model/learner.h"
#include "tests/parity/commands.h"

namespace scaletrain {
namespace {

train::Learner learner_of(const std::string& path) {
  const recipe::Recipe recipe = recipe::load_recipe(path);
  return train::build_learner(recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1}, 1);
}

void load(const std::string& path, const std::string& out) {
  const train::Learner learner = learner_of(path);
  const recipe::Recipe recipe = recipe::load_recipe(path);
  const checkpoint::WeightReport report = checkpoint::load_weights(
      *recipe.model.weights, learner.model->weight_rules(), learner.tensors(), [] {},
      [&recipe](const format::WeightFiles& files) {
        exchange::check_same_computation(recipe.model, files);
      });
  checkpoint::HostTensors(units::full_shards(learner.tensors())).write(core::system_disk(), out);
  fmt::print("{}", checkpoint::to_json(report));
}

void print_scales(const std::string& path) {
  for (const units::NamedParameter& parameter : learner_of(path).parameters()) {
    fmt::print("{} {:.17g}\n", parameter.name, parameter.lr_scale);
  }
}

void adapt(const std::string& in, const std::string& out, std::int64_t channels) {
  const format::SafetensorsFile file(in);
  const format::TensorInfo& info = file.tensors().front();
  const at::Tensor kernel = at::empty(info.shape);
  file.read(info, checkpoint::bytes_of(kernel));
  checkpoint::HostTensors(
      units::full_shards({{"kernel", checkpoint::adapt_channels(kernel, channels)}}))
      .write(core::system_disk(), out);
}

void run(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  if (command == "load" && arguments.size() == 3) {
    load(arguments[1], arguments[2]);
  } else if (command == "scales" && arguments.size() == 2) {
    print_scales(arguments[1]);
  } else if (command == "channels" && arguments.size() == 4) {
    adapt(arguments[1], arguments[2], std::stoll(arguments[3]));
  } else {
    throw core::UsageError("weights_program", "unknown arguments", "see the top of its source");
  }
}

}  // namespace
}  // namespace scaletrain

int main(int argc, char** argv) {
  return scaletrain::parity::run_commands(argc, argv, scaletrain::run);
}
