#include "lib/train/state/even_parts.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "lib/core/error.h"
#include "lib/units/tensor_part.h"
#include "tests/dist/ranks.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;

// Of rank 0 and of rank 1: a fused product [3, 8] whose two parts tensor ranks cut by columns, -0
// among its values; a norm that both have and the first writes; a bias that rank 1 alone has.
checkpoint::Contents contents_of(int rank, bool writes) {
  const units::TensorRule rule{.pattern = "w", .dimension = 1, .parts = 2};
  const units::TensorPart part = units::part_of(rule, "w", {3, 8}, {.rank = rank, .ranks = 2});
  const at::Tensor product = at::arange(24, at::kFloat).neg().view({3, 8});
  checkpoint::Contents contents;
  contents.cut = checkpoint::Cut{.parts = {}, .place = rank, .places = 2, .writes = writes};
  checkpoint::Parts& parts = contents.cut->parts;
  parts["w"] = {.shape = {3, 8}, .pieces = part.pieces()};
  parts["norm"] = {.shape = {5}, .pieces = {format::whole_piece({5})}, .writes = rank == 0};
  parts["bias"] = {.shape = {1}};
  contents.model = {{"w", part.of(product)}, {"norm", at::ones({5})}, {"mean", at::zeros({2})}};
  contents.optimizer = {{"exp_avg/w", part.of(product * 3)}, {"step", at::full({}, 7)}};
  if (rank == 1) {
    parts["bias"].pieces = {format::whole_piece({1})};
    contents.model["bias"] = at::full({1}, 2.0);
    contents.optimizer["exp_avg/bias"] = at::full({1}, 4.0);
  }
  contents.means["ema"].tensors = {{"w", part.of(product * 2)}};
  return contents;
}

TEST_CASE("what ranks have of tensors becomes an equal range of each, bit for bit") {
  const auto results =
      testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
        dist::Group group(env, at::kCPU, 20s);
        checkpoint::Contents found = contents_of(env.rank, /*writes=*/true);
        divide_evenly(group, found);
        std::string wrong;
        const auto check = [&](const at::Tensor& tensor, const at::Tensor& whole) {
          const std::int64_t all = whole.numel();
          const std::int64_t first = all * env.rank / 2, last = all * (env.rank + 1) / 2;
          const at::Tensor want = whole.view({-1}).slice(0, first, last);
          if (!tensor.view(at::kByte).equal(want.contiguous().view(at::kByte))) wrong += "bits; ";
        };
        const at::Tensor product = at::arange(24, at::kFloat).neg();
        check(found.model.at("w"), product);
        check(found.model.at("norm"), at::ones({5}));
        check(found.means.at("ema").tensors.at("w"), product * 2);
        check(found.optimizer.at("exp_avg/w"), product * 3);
        // One element cannot be divided.
        if (found.model.contains("bias") != (env.rank == 1)) wrong += "bias; ";
        if (found.optimizer.contains("exp_avg/bias") != (env.rank == 1)) wrong += "its state; ";
        // What is not cut all have still.
        if (!found.model.contains("mean") || !found.optimizer.contains("step")) wrong += "whole; ";
        const checkpoint::Parts& parts = found.cut->parts;
        const std::int64_t first = 12 * env.rank;
        if (parts.at("w").pieces != std::vector{format::range_piece({3, 8}, first, first + 12)}) {
          wrong += "pieces; ";
        }
        const bool all_write = std::all_of(parts.begin(), parts.end(),
                                           [](const auto& part) { return part.second.writes; });
        if (!all_write) wrong += "writers; ";
        group.end("the end");
        return wrong;
      });
  for (const auto& result : results) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

TEST_CASE("a tensor that is not what its part says is a mistake of the program") {
  dist::Group group(core::WorkerEnv(), at::kCPU, 1s);
  checkpoint::Contents contents = contents_of(0, /*writes=*/true);
  contents.model["w"] = at::zeros({11});
  CHECK_THROWS_AS(divide_evenly(group, contents), core::InternalError);
}

TEST_CASE("a replica that does not write exchanges nothing") {
  dist::Group group(core::WorkerEnv(), at::kCPU, 1s);
  checkpoint::Contents contents = contents_of(0, /*writes=*/false);
  divide_evenly(group, contents);
  CHECK(contents.model.at("w").sizes() == at::IntArrayRef{3, 4});
}

}  // namespace
}  // namespace scaletrain::train
