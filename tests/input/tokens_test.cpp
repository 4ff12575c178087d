#include "lib/input/tokens.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <numeric>
#include <span>

#include "lib/core/buffer.h"
#include "lib/data/loader/token_stream.h"

namespace {

using namespace scaletrain;

TEST_CASE("windows become tokens and what comes next, copied") {
  const auto pool = core::make_host_pool();
  data::Batch batch;
  batch.columns = data::Columns({{data::Element::kInt64, 3}, {data::Element::kInt64, 3}}, 2, *pool);
  batch.count = 2;
  const std::span<std::int64_t> tokens = data::tokens_of(batch), next = data::next_of(batch);
  std::iota(tokens.begin(), tokens.end(), 10);
  std::iota(next.begin(), next.end(), 11);

  const input::TokenTensors result = input::TokenInput(at::kCPU).prepare(batch);
  std::fill(tokens.begin(), tokens.end(), 0);
  std::fill(next.begin(), next.end(), 0);
  CHECK(at::equal(result.tokens, at::arange(10, 16).view({2, 3})));
  CHECK(at::equal(result.targets, at::arange(11, 17).view({2, 3})));
}

}  // namespace
