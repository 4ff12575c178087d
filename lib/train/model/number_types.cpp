#include "lib/train/model/number_types.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/glob.h"
#include "lib/nn/layers/linear.h"
#include "lib/optim/bf16_weights.h"
#include "lib/recipe/recipe.h"
#include "lib/train/rules/parameter_rules.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kMultiple = 16;  // divides the sizes of FP8 matrix products
constexpr double kLargestFloat = std::numeric_limits<float>::max();
constexpr std::int64_t kLargestInteger = std::numeric_limits<std::int32_t>::max();

void refuse_idle_patterns(const std::vector<std::string>& patterns,
                          const std::map<std::string, nn::Linear*>& layers) {
  for (const std::string& pattern : patterns) {
    const bool fits = std::any_of(layers.begin(), layers.end(), [&](const auto& layer) {
      return core::matches(pattern, layer.first);
    });
    if (fits) continue;
    std::vector<std::string> names;
    names.reserve(layers.size());
    for (const auto& layer : layers) names.push_back(layer.first);
    throw core::RecipeError("/precision/keep",
                            fmt::format("no linear layer is named \"{}\"", pattern),
                            fmt::format("the model has: {}", fmt::join(names, ", ")));
  }
}

// Makes the recipe's optimizer; for pure bf16 weights, with their rounding.
std::unique_ptr<optim::Optimizer> optimizer_of(const recipe::Recipe& recipe,
                                               std::vector<units::NamedParameter> owned) {
  if (recipe.precision.name != "bf16_pure") {
    return optim::make_optimizer(recipe.optimizer, std::move(owned));
  }
  const optim::Rounding rounding = recipe.precision.text("update") == "kahan"
                                       ? optim::Rounding::kKahan
                                       : optim::Rounding::kStochastic;
  return optim::make_bf16_optimizer(recipe.optimizer, owned, rounding, recipe.seed);
}

}  // namespace

void convert_weights(nn::Model& model, const precision::Precision& precision, bool blank) {
  const at::ScalarType type = precision.weights();
  const at::NoGradGuard no_grad;
  for (const std::shared_ptr<torch::nn::Module>& module : model.modules()) {
    const std::vector<at::Tensor> buffers = module->buffers(/*recurse=*/false);
    std::vector<at::Tensor> statistics;
    std::ranges::copy_if(buffers, std::back_inserter(statistics),
                         [](const at::Tensor& buffer) { return buffer.is_floating_point(); });
    if (!statistics.empty() && type != at::kDouble) continue;
    for (at::Tensor& parameter : module->parameters(/*recurse=*/false)) {
      const at::Tensor whole = parameter.detach();
      parameter.set_data(blank ? at::empty_like(whole, whole.options().dtype(type))
                               : whole.to(type));
    }
    for (at::Tensor& buffer : statistics) buffer.set_data(buffer.to(type));
  }
}

void set_linear_products(nn::Model& model, const precision::Precision& precision,
                         const recipe::Precision& recipe) {
  const units::LinearProduct product = precision.linear_product();
  if (!product) return;
  std::map<std::string, nn::Linear*> layers;
  for (const auto& item : model.named_modules()) {
    auto* const linear = dynamic_cast<nn::Linear*>(item.value().get());
    if (linear != nullptr) layers.emplace(item.key(), linear);
  }
  refuse_idle_patterns(recipe.keep, layers);
  const std::set<std::string> outer = outer_parameters(model);
  std::size_t count = 0;
  for (const auto& [name, layer] : layers) {
    const nn::Linear::Options& sizes = layer->options();
    const bool fits = sizes.in % kMultiple == 0 && sizes.out % kMultiple == 0;
    if (!fits || outer.contains(name + ".weight") || core::matches_any(recipe.keep, name)) continue;
    layer->multiply_by(product);
    ++count;
  }
  if (count > 0) return;
  throw core::RecipeError(
      "/precision",
      fmt::format("{} finds no linear layer between the first and the last one whose sizes are "
                  "multiples of {}",
                  recipe.name, kMultiple),
      "use bf16");
}

nlohmann::json scaler_state(precision::Precision& precision) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [name, tensor] : precision.state()) {
    if (tensor.is_floating_point()) {
      result[name] = tensor.item<double>();
    } else {
      result[name] = tensor.item<std::int64_t>();
    }
  }
  return result;
}

void restore_scaler(const nlohmann::json& saved, precision::Precision& precision) {
  if (saved.empty()) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : precision.state()) {
    const nlohmann::json value = saved.value(name, nlohmann::json());
    const bool is_state = tensor.is_floating_point()
                              ? value.is_number() && value > 0 && value <= kLargestFloat
                              : value.is_number_integer() && value >= 0 && value <= kLargestInteger;
    if (!is_state) {
      throw core::CheckpointError("state.json: /scaler",
                                  fmt::format("has no {}: {}", name, saved.dump()),
                                  "resume from another checkpoint");
    }
    tensor.fill_(value.get<double>());
  }
}

std::unique_ptr<optim::Optimizer> make_optimizer(const recipe::Recipe& recipe,
                                                 std::vector<units::NamedParameter> owned) {
  if (!recipe.offload || !recipe.offload->optimizer) return optimizer_of(recipe, std::move(owned));
  return optim::make_host_optimizer(
      [&recipe](std::vector<units::NamedParameter> twins) {
        return optimizer_of(recipe, std::move(twins));
      },
      owned, {.folder = recipe.offload->optimizer_folder});
}

}  // namespace scaletrain::train
