#include "lib/parallel/expert_exchange.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numeric>
#include <vector>

namespace scaletrain::parallel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Counts = units::ExpertCut::Counts;

Tensor move_rows(const Tensor& rows, const Counts& send, const Counts& receive,
                 dist::Group& group) {
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape[0] = std::accumulate(receive.begin(), receive.end(), std::int64_t{0});
  const Tensor received = at::empty(shape, rows.options());
  group.all_to_all(received, rows.contiguous(), receive, send, "tokens of the experts").wait();
  return received;
}

// Carries the group from forward to backward.
struct GroupHolder : torch::CustomClassHolder {
  explicit GroupHolder(dist::Group& held) : group(held) {}
  dist::Group& group;
};

class MoveRows : public torch::autograd::Function<MoveRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Counts& send,
                        const Counts& receive, dist::Group* group) {
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(*group));
    context->saved_data["send"] = send;
    context->saved_data["receive"] = receive;
    return move_rows(rows, send, receive, *group);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto holder = context->saved_data["group"].toCapsule();
    return {move_rows(gradients[0], context->saved_data["receive"].toIntVector(),
                      context->saved_data["send"].toIntVector(),
                      static_cast<GroupHolder&>(*holder).group),
            Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

units::ExpertCut expert_cut(dist::Group& experts) {
  return {.rank = experts.rank(),
          .ranks = experts.world_size(),
          .exchange_counts =
              [&experts](const Tensor& counts) {
                const Tensor own = counts.to(experts.device()), others = at::empty_like(own);
                const Counts ones(static_cast<std::size_t>(experts.world_size()), 1);
                experts.all_to_all(others, own, ones, ones, "token counts of the experts").wait();
                return experts.to_host(others);
              },
          .move =
              [&experts](const Tensor& rows, const Counts& send, const Counts& receive) {
                return MoveRows::apply(rows, send, receive, &experts);
              }};
}

}  // namespace scaletrain::parallel
