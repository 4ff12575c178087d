#include "lib/recipe/lint/usual_rate.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace scaletrain::recipe {
namespace {

// A published learning rate at a global batch.
struct RateRow {
  std::string_view optimizer;
  double rate;
  double batch;
  double exponent;  // of the batch: 1 scales linearly, 0.5 by the square root
  std::string_view source;
};

constexpr std::string_view kDeit = "Touvron et al. 2021 (DeiT)";
constexpr std::string_view kLion = "Chen et al. 2023 (Lion): 3 to 10 times below AdamW";

constexpr std::array<RateRow, 12> kRates{{
    {"sgd", 0.1, 256, 1, "Goyal et al. 2017"},
    {"adam", 0.001, 1024, 0.5, kDeit},
    {"adamw", 0.001, 1024, 0.5, kDeit},
    {"nadam", 0.001, 1024, 0.5, kDeit},
    {"radam", 0.001, 1024, 0.5, kDeit},
    {"adamw_8bit", 0.001, 1024, 0.5, kDeit},
    {"schedule_free_adamw", 0.001, 1024, 0.5, kDeit},
    {"lamb", 0.005, 2048, 0.5, "Wightman et al. 2021 (ResNet strikes back)"},
    {"lion", 0.0002, 1024, 0.5, kLion},
    {"lion_8bit", 0.0002, 1024, 0.5, kLion},
    {"soap", 0.003, 1024, 0.5, "Vyas et al. 2024 (SOAP)"},
    {"rmsprop_tf", 0.016, 256, 1, "Tan and Le 2019 (EfficientNet)"},
}};

// Published rates of SGD are those with a momentum of 0.9.
double momentum_factor(const Optimizer& optimizer) {
  constexpr double kPublishedMomentum = 0.9;
  if (optimizer.name != "sgd") return 1;
  return (1 - optimizer.number("momentum")) / (1 - kPublishedMomentum);
}

}  // namespace

std::optional<UsualRate> usual_rate(const Optimizer& optimizer, std::int64_t global) {
  const auto* const row = std::find_if(kRates.begin(), kRates.end(), [&](const RateRow& one) {
    return one.optimizer == optimizer.name;
  });
  if (row == kRates.end() || global <= 0) return std::nullopt;
  const double factor = std::pow(static_cast<double>(global) / row->batch, row->exponent);
  return UsualRate{.rate = row->rate * factor * momentum_factor(optimizer), .source = row->source};
}

double scaled_rate(const Optimizer& optimizer, std::int64_t global) {
  if (!optimizer.lr_base_batch) return optimizer.lr;
  const double factor = static_cast<double>(global) / static_cast<double>(*optimizer.lr_base_batch);
  return optimizer.lr * (optimizer.lr_scaling == "sqrt" ? std::sqrt(factor) : factor);
}

}  // namespace scaletrain::recipe
