#include "lib/nn/experts/routing.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The rows of `input` that `index` names. Backward gathers too, by `places`: the row of the output
// that each row of the input went to, `copies` times that of the whole input; 0 where `kept` is
// false.
class Gather : public torch::autograd::Function<Gather> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& index,
                        const Tensor& places, const std::optional<Tensor>& kept,
                        std::int64_t copies) {
    context->save_for_backward({places, kept.value_or(Tensor())});
    context->saved_data["copies"] = copies;
    return input.index_select(0, index);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &places = saved[0], &kept = saved[1];
    const std::int64_t copies = context->saved_data["copies"].toInt();
    Tensor result = gradients[0].index_select(0, places);
    if (kept.defined()) result.masked_fill_(kept.logical_not().unsqueeze(1), 0);
    if (copies > 1) result = result.unflatten(0, {copies, -1}).sum(0);
    return {result, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

// How many of `chosen` rows each expert takes.
std::vector<std::int64_t> rows_of(const Tensor& chosen, std::int64_t capacity) {
  const Tensor host = chosen.cpu();
  const auto* const counts = host.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> rows(counts, counts + host.numel());
  if (capacity > 0) {
    for (std::int64_t& count : rows) count = std::min(count, capacity);
  }
  return rows;
}

// Drops rows beyond the capacity; `experts` has all choices, whose `order` is by expert.
void drop(Routing& routing, const Tensor& experts, std::int64_t capacity) {
  const Tensor begins = routing.chosen.cumsum(0) - routing.chosen;
  const Tensor number = at::arange(routing.order.numel(), routing.order.options());
  const Tensor in_line = number - begins.index_select(0, experts.index_select(0, routing.order));
  routing.order = routing.order.masked_select(in_line.lt(capacity));
  routing.kept = at::zeros_like(experts, at::kBool).index_fill_(0, routing.order, 1);
  routing.weights = routing.weights * routing.kept.view_as(routing.weights);
}

}  // namespace

std::int64_t capacity_of(double factor, std::int64_t tokens, std::int64_t choices,
                         std::int64_t experts) {
  const double mean = static_cast<double>(tokens * choices) / static_cast<double>(experts);
  return static_cast<std::int64_t>(std::ceil(factor * mean));
}

Routing route(const Tensor& probabilities, std::int64_t choices, const Tensor& bias,
              std::int64_t capacity) {
  const Tensor scores = bias.defined() ? probabilities.detach() + bias : probabilities.detach();
  const Tensor best = std::get<1>(scores.topk(choices, -1)).t().contiguous();
  const Tensor of_best = probabilities.t().gather(0, best);
  const Tensor experts = best.flatten();

  Routing routing;
  routing.choices = choices;
  routing.weights = of_best / of_best.sum(0, /*keepdim=*/true);
  routing.chosen = at::bincount(experts, {}, probabilities.size(1));
  routing.order = std::get<1>(experts.sort(/*stable=*/true, 0, /*descending=*/false));
  routing.rows = rows_of(routing.chosen, capacity);
  if (capacity > 0) drop(routing, experts, capacity);
  routing.places = at::zeros_like(experts).index_copy_(
      0, routing.order, at::arange(routing.order.numel(), routing.order.options()));
  return routing;
}

Tensor to_experts(const Tensor& tokens, const Routing& routing) {
  const std::optional<Tensor> kept =
      routing.kept.defined() ? std::optional(routing.kept) : std::nullopt;
  return Gather::apply(tokens, routing.order.remainder(tokens.size(0)), routing.places, kept,
                       routing.choices);
}

Tensor from_experts(const Tensor& rows, const Routing& routing) {
  const Tensor taken = Gather::apply(rows, routing.places, routing.order, std::nullopt, 1);
  const Tensor weighed = taken.unflatten(0, {routing.choices, -1}) * routing.weights.unsqueeze(-1);
  return weighed.sum(0).to(rows.scalar_type());
}

Tensor moved_bias(const Tensor& bias, const Tensor& chosen, double rate) {
  const Tensor counts = chosen.to(at::kDouble);
  return bias + (counts.mean() - counts).sign().to(bias.scalar_type()) * rate;
}

Tensor balance_loss(const Tensor& sums, std::int64_t rows) {
  const Tensor means = sums / static_cast<double>(rows);
  return (means[0] * means[1]).sum() * sums.size(1);
}

}  // namespace scaletrain::nn
