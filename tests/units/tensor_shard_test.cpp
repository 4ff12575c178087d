#include "lib/units/tensor_shard.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <utility>

#include "lib/core/error.h"
#include "tests/format/checkpoint/piece_support.h"

namespace scaletrain::units {
namespace {

at::Tensor numbered(at::IntArrayRef shape) {
  return at::arange(c10::multiply_integers(shape), at::kFloat).view(shape);
}

Shard shard_for(const TensorRule& rule, std::vector<std::int64_t> shape, int rank, int ranks) {
  return shard_by(rule, rule.pattern, std::move(shape), {.rank = rank, .ranks = ranks});
}

// True if the elements of the local tensor are those of the slices, in their order.
bool follows_slices(const Shard& shard, int dimension) {
  const at::Tensor own = slice_of(numbered(shard.shape), shard, dimension).flatten().to(at::kLong);
  std::vector<std::int64_t> expected;
  for (const format::Piece& slice : shard.slices) {
    const auto elements = test::elements_of(slice, shard.shape);
    expected.insert(expected.end(), elements.begin(), elements.end());
  }
  return expected == std::vector<std::int64_t>(own.data_ptr<std::int64_t>(),
                                               own.data_ptr<std::int64_t>() + own.numel());
}

TEST_CASE("a rank has its share of each of the parts that lie side by side") {
  const TensorRule rule{.pattern = "qkv", .dimension = 0, .parts = 3, .together = 2};
  const Shard shard = shard_for(rule, {12, 5}, 1, 2);
  // Three parts of 4 rows, which are two heads of 2: the second of each.
  CHECK(local_shape(shard, 0) == std::vector<std::int64_t>{6, 5});
  CHECK(slice_of(numbered({12, 5}), shard, 0)
            .select(1, 0)
            .equal(at::tensor({10.0F, 15.0F, 30.0F, 35.0F, 50.0F, 55.0F})));
  CHECK(shard.slices.size() == 3);
  CHECK_FALSE(shard.tensor.defined());
}

TEST_CASE("a vocabulary is shared by ranks whose shards differ by one row at most") {
  const TensorRule rule{.pattern = "table", .style = TensorStyle::kVocabulary};
  const std::int64_t begins[] = {0, 3, 6, 9}, rows[] = {3, 3, 3, 2};
  for (int rank = 0; rank < 4; ++rank) {
    const Shard shard = shard_for(rule, {11, 2}, rank, 4);
    CHECK(shard.slices.front().begin.front() == begins[rank]);
    CHECK(local_shape(shard, 0) == std::vector<std::int64_t>{rows[rank], 2});
  }
}

TEST_CASE("shards of all ranks are the full tensor, and slices say where their elements lie") {
  for (const int dimension : {0, 1}) {
    for (const int parts : {1, 3}) {
      const TensorRule rule{.pattern = "w", .dimension = dimension, .parts = parts};
      const at::Tensor full = numbered({12, 6}), together = at::zeros({12, 6});
      for (int rank = 0; rank < 2; ++rank) {
        Shard shard = shard_for(rule, {12, 6}, rank, 2);
        CHECK(follows_slices(shard, dimension));
        shard.tensor = slice_of(full, shard, dimension);
        copy_to_full(shard, together);
        // As chunks side by side.
        std::vector<at::Tensor> expected;
        for (const at::Tensor& part : full.chunk(parts, dimension)) {
          expected.push_back(part.chunk(2, dimension)[static_cast<std::size_t>(rank)]);
        }
        CHECK(shard.tensor.equal(at::cat(expected, dimension)));
      }
      CHECK(together.equal(full));
    }
  }
  const TensorRule bias{.pattern = "b", .parts = 3};
  CHECK(follows_slices(shard_for(bias, {12}, 1, 4), 0));
}

TEST_CASE("numbers of ranks that do not fit are refused with those that do") {
  const TensorRule heads{.pattern = "q", .together = 8}, features{.pattern = "up"};
  CHECK_THROWS_WITH_AS(shard_by(heads, "h.0.q", {48, 4}, {.rank = 0, .ranks = 4}),
                       "/parallel/tensor: 4 ranks cannot share the 6 heads of h.0.q\n"
                       "  use a number that divides them: 2, 3, 6",
                       core::RecipeError);
  CHECK_THROWS_WITH_AS(shard_by(features, "up", {7, 4}, {.rank = 0, .ranks = 2}),
                       "/parallel/tensor: 2 ranks cannot share the 7 features of up\n"
                       "  use a number that divides them: 7",
                       core::RecipeError);
  const TensorRule table{.pattern = "t", .style = TensorStyle::kVocabulary};
  CHECK_THROWS_AS(shard_by(table, "t", {3, 4}, {.rank = 0, .ranks = 4}), core::RecipeError);
}

TEST_CASE("the first row that fits a tensor is its rule; rows of layers are none") {
  const std::vector<TensorRule> plan{{.pattern = "h.*.norm", .style = TensorStyle::kEntry},
                                     {.pattern = "h.*.o.weight", .style = TensorStyle::kRow},
                                     {.pattern = "h.*.weight"}};
  CHECK(find_rule(plan, "h.0.o.weight")->style == TensorStyle::kRow);
  CHECK(find_rule(plan, "h.0.q.weight")->style == TensorStyle::kColumn);
  CHECK(find_rule(plan, "h.0.norm") == nullptr);
  CHECK(find_rule(plan, "wte.weight") == nullptr);
}

}  // namespace
}  // namespace scaletrain::units
