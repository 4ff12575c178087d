#include "lib/nn/layers/embedding.h"

#include <ATen/ATen.h>

#include <utility>

#include "lib/nn/layers/dense.h"

namespace scaletrain::nn {

Embedding::Embedding(std::int64_t rows, std::int64_t dim)
    : weight_(register_parameter("weight", at::empty({rows, dim}))) {}

at::Tensor Embedding::forward(const at::Tensor& ids) const {
  if (!cut_) return at::embedding(weight_, ids);
  const at::Tensor own = ids - cut_->first;
  const at::Tensor elsewhere = own.lt(0).logical_or_(own.ge(weight_.size(0)));
  const at::Tensor found = at::embedding(weight_, own.masked_fill(elsewhere, 0));
  return cut_->after(found.masked_fill(elsewhere.unsqueeze(-1), 0));
}

at::Tensor Embedding::scores(const at::Tensor& input) const { return dense(input, weight_); }

at::Tensor Embedding::rows(std::int64_t begin, std::int64_t count) const {
  return weight_.narrow(0, begin, count);
}

void Embedding::initialise(const std::string& /*name*/, const at::Tensor& logical,
                           at::Generator generator) const {
  logical.normal_(0, 1, std::move(generator));
}

}  // namespace scaletrain::nn
