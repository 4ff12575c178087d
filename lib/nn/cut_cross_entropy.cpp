#include "lib/nn/cut_cross_entropy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class CutCrossEntropy : public torch::autograd::Function<CutCrossEntropy> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& targets,
                        double smoothing, const units::ClassCut& cut) {
    const Tensor own = targets - cut.first;
    const Tensor counts = targets.ge(0);
    const Tensor is_here = own.ge(0).logical_and_(own.lt(logits.size(1))).logical_and_(counts);
    const Tensor place = own.masked_fill(is_here.logical_not(), 0).unsqueeze(1);

    const Tensor highest = logits.amax(1);
    cut.max(highest);
    const Tensor shares = (logits - highest.unsqueeze(1)).exp_();
    std::vector<Tensor> rows{shares.sum(1), logits.gather(1, place).squeeze(1) * is_here};
    if (smoothing > 0) rows.push_back(logits.sum(1));
    const Tensor sums = at::stack(rows);
    cut.sum(sums);
    shares.div_(sums[0].unsqueeze(1));

    const Tensor log_sum = sums[0].log() + highest;
    Tensor losses = log_sum - (1 - smoothing) * sums[1];
    if (smoothing > 0) losses = losses - smoothing / static_cast<double>(cut.classes) * sums[2];
    context->save_for_backward({shares, place, is_here, counts});
    context->saved_data["smoothing"] = smoothing;
    context->saved_data["classes"] = cut.classes;
    return (losses * counts).sum();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &shares = saved[0], &place = saved[1], &is_here = saved[2], &counts = saved[3];
    const double smoothing = context->saved_data["smoothing"].toDouble();
    const auto classes = static_cast<double>(context->saved_data["classes"].toInt());
    Tensor result = smoothing > 0 ? shares - smoothing / classes : shares.clone();
    result.scatter_add_(1, place, is_here.unsqueeze(1).to(result.scalar_type()) * (smoothing - 1));
    result.mul_(gradients[0] * counts.unsqueeze(1));
    return {result, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor cut_cross_entropy(const Tensor& logits, const Tensor& targets, double label_smoothing,
                         const units::ClassCut& cut) {
  return CutCrossEntropy::apply(logits, targets, label_smoothing, cut);
}

}  // namespace scaletrain::nn
