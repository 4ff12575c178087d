#include "lib/engine/chunked_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <iterator>

namespace scaletrain::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Gradients of the sum over all chunks; undefined if none is required.
struct Gradients {
  at::Tensor row;
  variable_list parameters;
};

// Adds one chunk's gradients, `all`: that of its tokens, if required, then those of `parameters`.
void add_gradients(Gradients& sums, variable_list all, bool of_tokens, std::int64_t first) {
  if (of_tokens) {
    sums.row.narrow(1, first, all.front().size(1)).copy_(all.front());
    all.erase(all.begin());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].defined()) continue;
    if (sums.parameters[i].defined()) {
      sums.parameters[i].add_(all[i]);
    } else {
      sums.parameters[i] = all[i];
    }
  }
}

class ChunkedLoss : public torch::autograd::Function<ChunkedLoss> {
 public:
  // All `parameters` require gradients.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& row,
                            at::TensorList parameters, std::int64_t chunk,
                            const LossOfTokens& loss) {
    const bool of_tokens = row.requires_grad();
    Gradients sums{.row = of_tokens ? at::empty_like(row) : at::Tensor(),
                   .parameters = variable_list(parameters.size())};
    at::Tensor total;
    for_each_chunk(row, chunk, [&](const at::Tensor& part, std::int64_t first) {
      const at::AutoGradMode with_grad(true);
      const at::Tensor leaf = part.detach().requires_grad_(of_tokens);
      const at::Tensor own = loss(leaf, first);
      variable_list inputs;
      if (of_tokens) inputs.push_back(leaf);
      inputs.insert(inputs.end(), parameters.begin(), parameters.end());
      add_gradients(sums,
                    torch::autograd::grad({own}, inputs, /*grad_outputs=*/{},
                                          /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                                          /*allow_unused=*/true),
                    of_tokens, first);
      total = total.defined() ? total.add_(own.detach()) : own.detach().clone();
    });
    variable_list saved{sums.row};
    saved.insert(saved.end(), sums.parameters.begin(), sums.parameters.end());
    context->save_for_backward(saved);
    return total;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result = context->get_saved_variables();
    for (at::Tensor& one : result) {
      if (one.defined()) one.mul_(gradients[0]);
    }
    result.resize(result.size() + 2);  // for the arguments `chunk` and `loss`
    return result;
  }
};

}  // namespace

at::Tensor tokens_in_a_row(const at::Tensor& batch) { return batch.flatten(0, 1).unsqueeze(0); }

void for_each_chunk(const at::Tensor& row, std::int64_t chunk,
                    const std::function<void(const at::Tensor& part, std::int64_t first)>& part) {
  const std::int64_t tokens = row.size(1);
  for (std::int64_t first = 0; first < tokens; first += chunk) {
    part(row.narrow(1, first, std::min(chunk, tokens - first)), first);
  }
}

at::Tensor chunked_loss(const at::Tensor& hidden, const std::vector<at::Tensor>& parameters,
                        std::int64_t chunk, const LossOfTokens& loss) {
  variable_list trained;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(trained),
               [](const at::Tensor& one) { return one.requires_grad(); });
  const at::Tensor row = tokens_in_a_row(hidden);
  if (!row.requires_grad() && trained.empty()) {
    at::Tensor total;
    for_each_chunk(row, chunk, [&](const at::Tensor& part, std::int64_t first) {
      const at::Tensor own = loss(part, first);
      total = total.defined() ? total + own : own;
    });
    return total;
  }
  return ChunkedLoss::apply(row, at::TensorList(trained), chunk, loss);
}

}  // namespace scaletrain::engine
