#include "lib/parallel/tensor_exchange.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "lib/core/error.h"

namespace scaletrain::parallel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using units::Flow;

constexpr std::int64_t kTokens = 1;  // dimension of tokens

// Collective that a tensor passes in one direction.
enum class Way {
  kIdentity,
  kSum,         // all-reduce
  kGather,      // all-gather of tokens
  kScatterSum,  // reduce-scatter of tokens
  kSplit        // slice of this rank's tokens
};

Tensor sum(const Tensor& input, dist::Group& group) {
  Tensor result = input.clone(at::MemoryFormat::Contiguous);
  group.all_reduce_sum(result, "row-parallel sum").wait();
  return result;
}

// Collectives concatenate along the first dimension only, hence the transpositions.
Tensor gather(const Tensor& input, dist::Group& group) {
  const Tensor part = input.transpose(0, kTokens).contiguous();
  std::vector<std::int64_t> shape = part.sizes().vec();
  shape[0] *= group.world_size();
  const Tensor all = at::empty(shape, part.options());
  group.all_gather(all, part, "tokens of all ranks").wait();
  return all.transpose(0, kTokens).contiguous();
}

void check_division(std::int64_t tokens, const dist::Group& group) {
  if (tokens % group.world_size() == 0) return;
  throw core::RecipeError(
      "/parallel/sequence",
      fmt::format("{} ranks cannot divide {} tokens evenly", group.world_size(), tokens),
      "use a multiple of \"tensor\", or leave it out");
}

Tensor scatter_sum(const Tensor& input, dist::Group& group) {
  check_division(input.size(kTokens), group);
  const Tensor whole = input.transpose(0, kTokens).contiguous();
  std::vector<std::int64_t> shape = whole.sizes().vec();
  shape[0] /= group.world_size();
  const Tensor part = at::empty(shape, whole.options());
  group.reduce_scatter_sum(part, whole, "row-parallel sum").wait();
  return part.transpose(0, kTokens).contiguous();
}

Tensor split(const Tensor& input, dist::Group& group) {
  check_division(input.size(kTokens), group);
  const std::int64_t tokens = input.size(kTokens) / group.world_size();
  return input.narrow(kTokens, group.rank() * tokens, tokens).clone(at::MemoryFormat::Contiguous);
}

template <Way way>
Tensor go(const Tensor& input, dist::Group& group) {
  switch (way) {
    case Way::kIdentity:
      return input;
    case Way::kSum:
      return sum(input, group);
    case Way::kGather:
      return gather(input, group);
    case Way::kScatterSum:
      return scatter_sum(input, group);
    case Way::kSplit:
      return split(input, group);
  }
  return input;
}

// Carries the group from forward to backward.
struct GroupHolder : torch::CustomClassHolder {
  explicit GroupHolder(dist::Group& held) : group(held) {}
  dist::Group& group;
};

template <Way forward_way, Way backward_way>
class Move : public torch::autograd::Function<Move<forward_way, backward_way>> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, dist::Group* group) {
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(*group));
    return go<forward_way>(input, *group);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto holder = context->saved_data["group"].toCapsule();
    dist::Group& group = static_cast<GroupHolder&>(*holder).group;
    return {go<backward_way>(gradients[0], group), Tensor()};
  }
};

template <Way forward_way, Way backward_way>
units::Exchange move(dist::Group& group) {
  return [&group](const Tensor& input) {
    return Move<forward_way, backward_way>::apply(input, &group);
  };
}

// Passes the unit's main output tensor through `exchange`.
void add_behind(units::Unit& unit, units::Exchange exchange) {
  unit.run = [run = std::move(unit.run), exchange = std::move(exchange)](
                 Flow input, const units::Context& context) {
    Flow output = run(std::move(input), context);
    output.front() = exchange(output.front());
    return output;
  };
}

}  // namespace

units::Exchange entry_exchange(dist::Group& group, bool sequence) {
  return sequence ? move<Way::kGather, Way::kScatterSum>(group)
                  : move<Way::kIdentity, Way::kSum>(group);
}

units::Exchange sum_exchange(dist::Group& group, bool sequence) {
  return sequence ? move<Way::kScatterSum, Way::kGather>(group)
                  : move<Way::kSum, Way::kIdentity>(group);
}

units::Exchange count_exchange(dist::Group& group) { return move<Way::kSum, Way::kSum>(group); }

std::vector<units::Unit> with_divided_tokens(std::vector<units::Unit> units, dist::Group& group) {
  if (units.size() < 3) return units;  // there are no units in between
  add_behind(units.front(), move<Way::kSplit, Way::kGather>(group));
  add_behind(units[units.size() - 2], move<Way::kGather, Way::kSplit>(group));
  return units;
}

void sum_gradient(const Tensor& parameter, dist::Group& group) {
  parameter.register_hook([&group](const Tensor& gradient) { return sum(gradient, group); });
}

units::ClassCut class_cut(dist::Group& group, std::int64_t first, std::int64_t classes) {
  return {.first = first,
          .classes = classes,
          .sum = [&group](
                     const Tensor& sums) { group.all_reduce_sum(sums, "sums of the loss").wait(); },
          .max =
              [&group](const Tensor& highest) {
                group.all_reduce_max(highest, "highest logits").wait();
              }};
}

}  // namespace scaletrain::parallel
