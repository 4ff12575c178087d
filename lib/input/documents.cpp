#include "lib/input/documents.h"

#include <ATen/ATen.h>

#include <tuple>

namespace scaletrain::input {

Documents documents_of(const at::Tensor& tokens, std::int64_t end_of_text) {
  const at::Tensor ends = tokens.eq(end_of_text).to(at::kLong);
  const at::Tensor places = at::arange(tokens.size(1), tokens.options());
  const at::Tensor begins =
      at::zeros_like(tokens);  // position at each document's first token, 0 elsewhere
  begins.slice(1, 1).copy_(ends.slice(1, 0, -1) * places.slice(0, 1));
  return {.numbers = ends.cumsum(1) - ends,  // an end_of_text belongs to the document that it ends
          .positions = places - std::get<0>(begins.cummax(1))};
}

units::Context apart(const at::Tensor& tokens, std::int64_t end_of_text) {
  const Documents documents = documents_of(tokens, end_of_text);
  const at::Tensor& numbers = documents.numbers;
  return {.positions = documents.positions,
          .sees = numbers.unsqueeze(2).eq(numbers.unsqueeze(1)).tril().unsqueeze(1)};
}

}  // namespace scaletrain::input
