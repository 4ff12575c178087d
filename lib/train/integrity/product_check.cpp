#include "lib/train/integrity/product_check.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/nn/layers/dense.h"
#include "lib/nn/layers/linear.h"

namespace scaletrain::train {
namespace {

constexpr double kLambda = 8;
constexpr double kTf32Unit = 1.0 / (1 << 11);

// Unit roundoff: half of the distance between 1 and the next number.
double unit_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return std::ldexp(1, -53);
    case at::kHalf:
      return std::ldexp(1, -11);
    case at::kBFloat16:
      return std::ldexp(1, -8);
    default:
      return std::ldexp(1, -24);
  }
}

at::Tensor norms_along(const at::Tensor& tensor, std::int64_t dimension) {
  const std::array<std::int64_t, 1> dimensions{dimension};
  return at::linalg_vector_norm(tensor, 2, at::IntArrayRef(dimensions), /*keepdim=*/false,
                                at::kDouble);
}

}  // namespace

at::Tensor checksum_ratio(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& output) {
  const at::NoGradGuard no_grad;
  // Autocast has rounded the factors to the dtype of the output.
  const at::ScalarType type = output.scalar_type();
  const at::Tensor x = input.detach().reshape({-1, input.size(-1)}).to(type);
  const at::Tensor w = weight.detach().to(type);
  const at::Tensor y = output.detach().reshape({-1, output.size(-1)});

  at::Tensor expected = at::mv(w.to(at::kDouble), x.sum(0, false, at::kDouble));
  if (bias.defined()) {
    expected.add_(bias.detach().to(at::kDouble), static_cast<double>(x.size(0)));
  }
  // Products of 16-bit numbers are summed in fp32.
  const bool is_double = type == at::kDouble;
  const bool is_tf32 = type == at::kFloat && x.is_cuda() && at::globalContext().allowTF32CuBLAS();
  double unit = std::sqrt(static_cast<double>(x.size(1))) * unit_of(is_double ? type : at::kFloat);
  if (is_tf32) unit += 2 * kTf32Unit;
  const at::Tensor tolerance = (norms_along(x.flatten(), 0) * norms_along(w, 1))
                                   .mul_(unit)
                                   .add_(norms_along(y, 0), unit_of(type));
  const at::Tensor difference = (y.sum(0, false, at::kDouble) - expected).abs_();
  // An element of zeros has no error.
  const double least = std::numeric_limits<double>::min();
  at::Tensor ratio = difference / tolerance.mul_(kLambda).add_(least);
  // A wrong value may be NaN, which no comparison finds; factors that are not finite have no sum.
  const double wrong = std::numeric_limits<double>::max();
  ratio = at::where(ratio.isfinite(), ratio, wrong);
  ratio = at::where(expected.isfinite(), ratio, 0.0);
  return ratio.numel() > 0 ? ratio.max() : ratio.sum();
}

struct ProductCheck::Watch {
  // The worst product of a step: [ratio, layer].
  struct Step {
    std::int64_t step = 0;
    at::Tensor worst;
  };

  std::vector<std::string> names;
  bool every = false;
  std::int64_t step = 0;
  std::optional<BitFlip> flip;  // of this step
  PlantedFlips flips;
  std::vector<Step> steps;

  bool is_checked(std::size_t layer) const {
    const auto count = static_cast<std::int64_t>(names.size());
    return every || step % count == static_cast<std::int64_t>(layer);
  }

  // The element of this layer's product whose bit is to be flipped.
  void plant(std::size_t layer, const at::Tensor& output) {
    const auto count = static_cast<std::int64_t>(names.size());
    if (!flip || flip->index % count != static_cast<std::int64_t>(layer)) return;
    flip_bit({output}, flip->index / count, flip->bit);
    flip.reset();
  }

  void look(std::size_t layer, const at::Tensor& input, const at::Tensor& weight,
            const at::Tensor& bias, const at::Tensor& output) {
    if (!at::GradMode::is_enabled()) return;
    plant(layer, output);
    if (!is_checked(layer)) return;
    const at::NoGradGuard no_grad;
    const at::Tensor ratio = checksum_ratio(input, weight, bias, output);
    const at::Tensor one = at::stack({ratio, at::full_like(ratio, static_cast<double>(layer))});
    if (steps.empty() || steps.back().step != step) {
      steps.push_back({.step = step, .worst = one});
    } else {
      at::Tensor& worst = steps.back().worst;
      worst = at::where(one[0] > worst[0], one, worst);
    }
  }
};

ProductCheck::ProductCheck(nn::Model& model, bool every, std::int64_t next, int rank)
    : watch_(std::make_shared<Watch>(Watch{.names = {},
                                           .every = every,
                                           .step = 0,
                                           .flip = std::nullopt,
                                           .flips = PlantedFlips(rank),
                                           .steps = {}})) {
  for (const auto& item : model.named_modules()) {
    auto* const linear = dynamic_cast<nn::Linear*>(item.value().get());
    if (linear == nullptr) continue;
    const std::size_t layer = watch_->names.size();
    watch_->names.push_back(item.key());
    linear->multiply_by([watch = watch_, layer](const at::Tensor& input, const at::Tensor& weight,
                                                const at::Tensor& bias) {
      at::Tensor output = nn::dense(input, weight, bias);
      watch->look(layer, input, weight, bias, output);
      return output;
    });
  }
  begin(next);
}

std::size_t ProductCheck::layers() const { return watch_->names.size(); }

void ProductCheck::begin(std::int64_t next) {
  watch_->step = next;
  watch_->flip = watch_->flips.take(BitFlip::Where::kProducts, next);
}

std::optional<WrongProduct> ProductCheck::take() {
  const std::vector<Watch::Step> steps = std::exchange(watch_->steps, {});
  if (steps.empty()) return std::nullopt;
  std::vector<at::Tensor> all;
  all.reserve(steps.size());
  for (const Watch::Step& step : steps) all.push_back(step.worst);
  const at::Tensor host = at::stack(all).cpu();
  const auto values = host.accessor<double, 2>();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double ratio = values[static_cast<std::int64_t>(i)][0];
    if (ratio <= 1) continue;
    const auto layer = static_cast<std::size_t>(values[static_cast<std::int64_t>(i)][1]);
    return WrongProduct{.step = steps[i].step, .layer = watch_->names.at(layer), .ratio = ratio};
  }
  return std::nullopt;
}

}  // namespace scaletrain::train
