#include "lib/optim/optimizer.h"

#include <cmath>
#include <numbers>

#include "lib/core/registry.h"

namespace scaletrain::optim {

#define SCALETRAIN_OPTIMIZER(name, ...)                                   \
  std::unique_ptr<Optimizer> make_##name(const recipe::Optimizer& config, \
                                         std::vector<NamedParameter> parameters);
#include "lib/recipe/catalog/optimizers.def"

namespace {

using OptimizerFactory = std::unique_ptr<Optimizer> (*)(const recipe::Optimizer&,
                                                        std::vector<NamedParameter>);

const core::Registry<OptimizerFactory>& factories() {
  static const core::Registry<OptimizerFactory> filled = [] {
    core::Registry<OptimizerFactory> result("optimizer");
#define SCALETRAIN_OPTIMIZER(name, ...) result.add(#name, make_##name);
#include "lib/recipe/catalog/optimizers.def"
    return result;
  }();
  return filled;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const recipe::Optimizer& config,
                                          std::vector<NamedParameter> parameters) {
  std::unique_ptr<Optimizer> made = factories().find(config.name)(config, parameters);
  if (!config.centralize_gradients) return made;
  return with_centralized_gradients(std::move(made), std::move(parameters));
}

std::optional<double> scheduled_weight_decay(const recipe::Optimizer& config, std::int64_t step,
                                             std::int64_t total) {
  if (!config.weight_decay_end) return std::nullopt;
  const double way = static_cast<double>(step) / static_cast<double>(total);
  const double left = (1 + std::cos(std::numbers::pi * way)) / 2;
  return *config.weight_decay_end + (config.weight_decay - *config.weight_decay_end) * left;
}

double scaled_lr(const recipe::Optimizer& config, std::int64_t global_batch) {
  if (!config.lr_base_batch) return config.lr;
  const auto real = static_cast<double>(global_batch);
  const auto base = static_cast<double>(*config.lr_base_batch);
  return config.lr_scaling == "sqrt" ? config.lr * std::sqrt(real / base) : config.lr * real / base;
}

}  // namespace scaletrain::optim
