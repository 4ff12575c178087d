#include "lib/units/shard.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::units {
namespace {

const std::vector<std::int64_t> kFullShape{4, 6};

at::Tensor numbers() { return at::arange(24, at::kFloat).view(kFullShape); }

// Columns 1 to 2 of rows 1 to 3, and element 23.
Shard two_slices(const at::Tensor& tensor) {
  return {.tensor = tensor,
          .shape = kFullShape,
          .slices = {{.begin = {1, 1}, .size = {3, 2}, .first = 0, .last = 6},
                     format::range_piece(kFullShape, 23, 24)}};
}

}  // namespace

TEST_CASE("an unsharded tensor is one slice; a shard without slices is elsewhere") {
  const Shard full = full_shard(numbers(), /*owned=*/false);
  CHECK(full.is_here());
  CHECK(full.is_full());
  CHECK(full.count() == 24);
  CHECK_FALSE(full.owned);
  CHECK(full_shard(at::zeros({0, 3})).is_full());
  CHECK_FALSE(two_slices(at::zeros({7})).is_full());
  const Shards shards{{"here", full}, {"elsewhere", {.shape = kFullShape}}};
  CHECK_FALSE(shards.at("elsewhere").is_here());
  const NamedTensors local = local_tensors(shards);
  CHECK(local.size() == 1);
  CHECK(local.at("here").is_same(full.tensor));
}

TEST_CASE("elements are copied from a full tensor and back to their positions") {
  const at::Tensor expected = at::tensor({7.F, 8.F, 13.F, 14.F, 19.F, 20.F, 23.F});
  for (const at::Tensor& local : {at::zeros({7}), at::zeros({7, 2}).select(1, 0)}) {
    CAPTURE(local.is_contiguous());
    const Shard shard = two_slices(local);
    copy_from_full(numbers(), shard);
    CHECK(at::equal(local, expected));
    at::Tensor full = at::zeros(kFullShape);
    copy_to_full(shard, full);
    CHECK(at::equal(full.sum(), expected.sum()));
    CHECK((full[1][1].item<float>() == 7));
    CHECK((full[3][5].item<float>() == 23));
  }
  CHECK_THROWS_AS(copy_to_full(two_slices(at::zeros({6})), at::zeros(kFullShape)),
                  core::InternalError);
  CHECK_THROWS_AS(copy_from_full(numbers(), two_slices(at::zeros({8}))), core::InternalError);
}

TEST_CASE("a range of a shard's elements has the slices that lie in it, and a view of its tensor") {
  const Shard shard = two_slices(at::arange(7, at::kFloat));
  using Slices = std::vector<format::Piece>;
  const format::Piece box = shard.slices[0];
  const auto cut = [&](std::int64_t first, std::int64_t last) {
    format::Piece slice = box;
    slice.first = first;
    slice.last = last;
    return slice;
  };
  CHECK((range_of(shard, 0, 7).slices == shard.slices));
  CHECK((range_of(shard, 1, 3).slices == Slices{cut(1, 3)}));
  const Shard end = range_of(shard, 5, 7);
  CHECK((end.slices == Slices{cut(5, 6), shard.slices[1]}));
  CHECK(end.shape == kFullShape);
  CHECK((at::equal(end.tensor, at::tensor({5.F, 6.F}))));
  CHECK(end.tensor.is_alias_of(shard.tensor));
  CHECK_FALSE(range_of(shard, 4, 4).is_here());
  Shard described = shard;
  described.tensor.reset();
  CHECK_FALSE(range_of(described, 1, 3).tensor.defined());
}

TEST_CASE("a row of a tensor of all ranks has the elements at the same positions in that row") {
  const Shard row = in_row(two_slices(at::ones({7})), 2, 5);
  CHECK(row.shape == std::vector<std::int64_t>{5, 4, 6});
  at::Tensor full = at::zeros({5, 4, 6});
  copy_to_full(row, full);
  CHECK((full.sum().item<float>() == 7));
  CHECK((full[2].sum().item<float>() == 7));
  CHECK((full[2][1][1].item<float>() == 1));
  at::Tensor scalars = at::zeros({3});
  copy_to_full(in_row(full_shard(at::full({}, 4.0)), 1, 3), scalars);
  CHECK(at::equal(scalars, at::tensor({0.F, 4.F, 0.F})));
}

}  // namespace scaletrain::units
