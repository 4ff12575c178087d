#include "lib/units/tensor_part.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/checkpoint/piece_support.h"

namespace scaletrain::units {
namespace {

using Range = TensorPart::Range;

at::Tensor numbered(at::IntArrayRef shape) {
  return at::arange(c10::multiply_integers(shape), at::kFloat).view(shape);
}

// The numbers in `part` in the order in which they lie there, and those that its pieces say.
bool pieces_say(const TensorPart& part) {
  const at::Tensor own = part.of(numbered(part.shape)).flatten().to(at::kLong);
  std::vector<std::int64_t> said;
  for (const format::Piece& piece : part.pieces()) {
    const auto elements = test::elements_of(piece, part.shape);
    said.insert(said.end(), elements.begin(), elements.end());
  }
  return said == std::vector<std::int64_t>(own.data_ptr<std::int64_t>(),
                                           own.data_ptr<std::int64_t>() + own.numel());
}

TEST_CASE("a rank has its share of each of the parts that lie side by side") {
  const TensorRule rule{.pattern = "qkv", .dimension = 0, .parts = 3, .together = 2};
  const TensorPart part = part_of(rule, "qkv", {12, 5}, {.rank = 1, .ranks = 2});
  // Three parts of 4 rows, which are two heads of 2: the second of each.
  CHECK((part.ranges == std::vector<Range>{{2, 2}, {6, 2}, {10, 2}}));
  CHECK(part.part_shape() == std::vector<std::int64_t>{6, 5});
  CHECK(part.of(numbered({12, 5}))
            .select(1, 0)
            .equal(at::tensor({10.0F, 15.0F, 30.0F, 35.0F, 50.0F, 55.0F})));
  CHECK(part.pieces().size() == 3);
}

TEST_CASE("a vocabulary is shared by ranks whose parts differ by one row at most") {
  const TensorRule rule{.pattern = "table", .style = TensorStyle::kVocabulary};
  const auto rows = [&](int rank) {
    return part_of(rule, "table", {11, 2}, {.rank = rank, .ranks = 4}).ranges.front();
  };
  CHECK((rows(0) == Range{0, 3}));
  CHECK((rows(1) == Range{3, 3}));
  CHECK((rows(2) == Range{6, 3}));
  CHECK((rows(3) == Range{9, 2}));
}

TEST_CASE("parts put together are the whole, and their pieces say where they lie") {
  for (const int dimension : {0, 1}) {
    for (const int parts : {1, 3}) {
      const TensorRule rule{.pattern = "w", .dimension = dimension, .parts = parts};
      const at::Tensor whole = numbered({12, 6}), together = at::zeros({12, 6});
      for (int rank = 0; rank < 2; ++rank) {
        const TensorPart part = part_of(rule, "w", {12, 6}, {.rank = rank, .ranks = 2});
        part.put_into(together, part.of(whole));
        CHECK(pieces_say(part));
      }
      CHECK(together.equal(whole));
    }
  }
  const TensorRule bias{.pattern = "b", .parts = 3};
  CHECK(pieces_say(part_of(bias, "b", {12}, {.rank = 1, .ranks = 4})));
}

TEST_CASE("numbers of ranks that do not fit are refused with those that do") {
  const TensorRule heads{.pattern = "q", .together = 8}, features{.pattern = "up"};
  CHECK_THROWS_WITH_AS(part_of(heads, "h.0.q", {48, 4}, {.rank = 0, .ranks = 4}),
                       "/parallel/tensor: 4 ranks cannot share the 6 heads of h.0.q\n"
                       "  use a number that divides them: 2, 3, 6",
                       core::RecipeError);
  CHECK_THROWS_WITH_AS(part_of(features, "up", {7, 4}, {.rank = 0, .ranks = 2}),
                       "/parallel/tensor: 2 ranks cannot share the 7 features of up\n"
                       "  use a number that divides them: 7",
                       core::RecipeError);
  const TensorRule table{.pattern = "t", .style = TensorStyle::kVocabulary};
  CHECK_THROWS_AS(part_of(table, "t", {3, 4}, {.rank = 0, .ranks = 4}), core::RecipeError);
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
