#include "lib/train/state/reshard.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>

#include "lib/core/error.h"
#include "lib/units/tensor_shard.h"
#include "tests/dist/ranks.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;

using units::Shard;
using units::Shards;

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// -0 among the values, which no sum of floats gives back.
at::Tensor product() { return at::arange(24, at::kFloat).neg().view({3, 8}); }

Shard columns_of(const units::TensorRule& rule, int rank, const at::Tensor& full) {
  Shard shard = shard_by(rule, rule.pattern, full.sizes().vec(), {.rank = rank, .ranks = 2});
  shard.tensor = slice_of(full, shard, rule.dimension);
  return shard;
}

// Rank 0 or 1: a fused projection [3, 8] whose two parts tensor parallelism shards by columns, so
// that each row has two slices; a matrix of one slice; a norm that both ranks have and the first
// owns; a bias that only rank 1 has.
Shards shards_of(int rank) {
  const units::TensorRule fused{.pattern = "w", .dimension = 1, .parts = 2};
  const units::TensorRule columns{.pattern = "c", .dimension = 1};
  Shards shards{{"w", columns_of(fused, rank, product())},
                {"c", columns_of(columns, rank, product())},
                {"norm", units::full_shard(at::ones({5}), /*owned=*/rank == 0)},
                {"bias", {.shape = {1}}}};
  if (rank == 1) shards["bias"] = units::full_shard(at::full({1}, 2.0));
  return shards;
}

std::string on_two_ranks(const std::function<std::string(dist::Group& group)>& body) {
  std::string said;
  for (const auto& result :
       testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
         dist::Group group(env, at::kCPU, 20s);
         std::string wrong = body(group);
         group.end("the end");
         return wrong;
       })) {
    said += result.text + (result.status == 0 ? "" : "failed; ");
  }
  return said;
}

TEST_CASE("tensors of several slices become an equal range on each rank, bit for bit") {
  CHECK(on_two_ranks([](dist::Group& group) {
          const Shards before = shards_of(group.rank()), found = merge_slices(group, before);
          std::string wrong;
          const Shard& range = found.at("w");
          const std::int64_t first = 12 * group.rank();
          if (range.slices != std::vector{format::range_piece({3, 8}, first, first + 12)}) {
            wrong += "slices; ";
          }
          if (!same_bits(range.tensor, product().view({-1}).narrow(0, first, 12)))
            wrong += "bits; ";
          if (!range.owned) wrong += "owner; ";
          for (const char* const name : {"c", "norm", "bias"}) {
            const Shard &a = before.at(name), &b = found.at(name);
            const bool is_same = a.tensor.is_same(b.tensor) && a.slices == b.slices;
            if (!is_same || a.owned != b.owned) wrong += std::string(name) + " changed; ";
          }
          return wrong;
        }) == "");
}

TEST_CASE("shards of all ranks are gathered as full tensors, bit for bit, and taken back") {
  CHECK(on_two_ranks([](dist::Group& group) {
          Shards own = shards_of(group.rank());
          own.erase("bias");
          const Shards full = gather_full(group, own);
          std::string wrong;
          for (const char* const name : {"w", "c"}) {
            if (!full.at(name).is_full() || !same_bits(full.at(name).tensor, product())) {
              wrong += std::string(name) + " is not full; ";
            }
            Shard taken = own.at(name);
            taken.tensor = at::zeros_like(taken.tensor);
            copy_from_full(full.at(name).tensor, taken);
            if (!same_bits(taken.tensor, own.at(name).tensor)) wrong += "other values; ";
          }
          if (!full.at("norm").tensor.is_same(own.at("norm").tensor)) wrong += "norm was copied; ";
          return wrong;
        }) == "");
}

TEST_CASE("a shard with another number of elements than its slices is an internal error") {
  dist::Group group(core::WorkerEnv(), at::kCPU, 1s);
  Shards shards = shards_of(0);
  shards["w"].tensor = at::zeros({11});
  CHECK_THROWS_AS(merge_slices(group, shards), core::InternalError);
}

}  // namespace
}  // namespace scaletrain::train
