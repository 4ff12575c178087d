#include "lib/input/tokens.h"

#include <ATen/ops/from_blob.h>

#include "lib/data/loader/token_stream.h"

namespace scaletrain::input {

TokenTensors TokenInput::prepare(const data::Batch& batch) const {
  const std::int64_t context = batch.columns.layout()[data::kTokens].size;
  const auto view = [&](std::span<std::int64_t> values) {
    return at::from_blob(values.data(), {batch.count, context}, at::kLong);
  };
  const at::Tensor tokens = view(data::tokens_of(batch)), targets = view(data::next_of(batch));
  if (device_.is_cpu()) return {.tokens = tokens.clone(), .targets = targets.clone()};
  const std::vector<at::Tensor> copies = transfer_({tokens, targets}, batch.columns.block());
  return {.tokens = copies[0], .targets = copies[1]};
}

}  // namespace scaletrain::input
