#include "lib/parallel/unit_flats.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace scaletrain::parallel {
namespace {

units::NamedParameter parameter(const std::string& name, at::IntArrayRef shape, bool trained = true,
                                at::ScalarType type = at::kFloat) {
  return {.name = name, .tensor = at::zeros(shape, type).set_requires_grad(trained)};
}

// "units 0: a 0+6, b 16+3; part 16".
std::string text_of(const FlatPlan& plan, const std::vector<units::NamedParameter>& parameters) {
  std::string text = "units";
  for (const std::size_t unit : plan.units) text += fmt::format(" {}", unit);
  for (const FlatSlot& slot : plan.slots) {
    text += fmt::format("{} {} {}+{}", slot.begin == 0 ? ":" : ",", parameters[slot.parameter].name,
                        slot.begin, slot.count);
  }
  return text + fmt::format("; part {}", plan.part);
}

TEST_CASE("a block holds what one unit has of a type, trained or not; what is tied has its own") {
  const std::vector<units::NamedParameter> parameters{
      parameter("embed", {5, 4}),
      parameter("a.weight", {3, 2}),
      parameter("a.bias", {3}),
      parameter("a.frozen", {7}, false),
      parameter("b.half", {40}, true, at::kBFloat16),
      parameter("b.scalar", {}),
      parameter("nobody", {2}),
  };
  const auto plans =
      plan_flats(parameters,
                 {{"embed", "a.weight", "a.bias", "a.frozen"}, {"embed", "b.half", "b.scalar"}}, 2);
  std::vector<std::string> texts;
  for (const FlatPlan& plan : plans) texts.push_back(text_of(plan, parameters));
  CHECK(texts == std::vector<std::string>{
                     "units 0: a.frozen 0+7; part 16",
                     // 16 + 3 elements, half of which are 10, up to the next multiple of 16.
                     "units 0: a.weight 0+6, a.bias 16+3; part 16",
                     "units 0 1: embed 0+20; part 16",
                     "units 1: b.scalar 0+1, nobody 16+2; part 16",
                     "units 1: b.half 0+40; part 32",
                 });
  CHECK_FALSE(plans[0].is_trained);
  CHECK((plans[4].type == at::kBFloat16));
}

TEST_CASE("a block that ranks divide evenly has no gap at its end") {
  const std::vector<units::NamedParameter> parameters{parameter("a.weight", {4, 8})};
  CHECK(text_of(plan_flats(parameters, {{"a.weight"}}, 2)[0], parameters) ==
        "units 0: a.weight 0+32; part 16");
}

TEST_CASE("each element of a parameter is one rank's, and the gaps are all else") {
  FlatPlan plan{.units = {}, .slots = {{0, 0, 6}, {1, 16, 40}}, .part = 16};
  constexpr int kRanks = 4;
  for (const FlatSlot& slot : plan.slots) {
    std::int64_t next = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const FlatRange range = part_of(slot, plan.part, rank);
      if (range.first == range.last) continue;
      CHECK(range.first == next);
      next = range.last;
    }
    CHECK(next == slot.count);
  }
  const FlatRange second = part_of(plan.slots[1], plan.part, 2);  // elements 32 to 47 of the block
  CHECK(second.first == 16);
  CHECK(second.last == 32);
  CHECK(part_of(plan.slots[0], plan.part, 1).first == part_of(plan.slots[0], plan.part, 1).last);
  const std::vector<FlatRange> gaps = gaps_of(plan, kRanks);
  REQUIRE(gaps.size() == 2);
  CHECK(gaps[0].first == 6);
  CHECK(gaps[0].last == 16);
  CHECK(gaps[1].first == 56);
  CHECK(gaps[1].last == 64);
}

TEST_CASE("what is gathered as bf16 has a block of its own") {
  const std::vector<units::NamedParameter> parameters{
      parameter("a.weight", {3, 2}), parameter("a.norm", {3}), parameter("a.bias", {2})};
  const auto plans =
      plan_flats(parameters, {{"a.weight", "a.norm", "a.bias"}}, 2, {"a.weight", "a.bias"});
  REQUIRE(plans.size() == 2);
  CHECK(text_of(plans[0], parameters) == "units 0: a.norm 0+3; part 16");
  CHECK_FALSE(plans[0].is_bf16_when_gathered);
  CHECK(text_of(plans[1], parameters) == "units 0: a.weight 0+6, a.bias 16+2; part 16");
  CHECK(plans[1].is_bf16_when_gathered);
  CHECK((plans[1].type == at::kFloat));  // of what lies here
}

TEST_CASE("a part knows where it lies in the whole parameter") {
  const units::NamedParameter whole = parameter("a.weight", {3, 2});
  const units::NamedParameter part = shard_of_parameter(whole, {2, 5}, at::zeros({3}));
  CHECK(part.name == "a.weight");
  CHECK(part.shape() == std::vector<std::int64_t>{3, 2});
  CHECK(part.begin == 2);
  CHECK((part.state().slices == std::vector<format::Piece>{format::range_piece({3, 2}, 2, 5)}));
  CHECK(part.tensor.numel() == 3);
}

// Rows 0 and 1 of columns 0 and 1, then elements 5 to 9 of another box.
TEST_CASE("a shard of a tensor-parallel shard has the slices that lie in it") {
  units::NamedParameter whole = parameter("a.weight", {8});
  const format::Piece box{.begin = {0, 0}, .size = {2, 2}, .first = 0, .last = 4};
  const format::Piece rest{.begin = {2, 0}, .size = {3, 4}, .first = 5, .last = 9};
  whole.shard = units::Shard{.shape = {5, 4}, .slices = {box, rest}};
  const auto pieces_of = [&](std::int64_t first, std::int64_t last) {
    return shard_of_parameter(whole, {first, last}, at::zeros({last - first})).state().slices;
  };
  const auto cut = [](format::Piece piece, std::int64_t first, std::int64_t last) {
    piece.first = first;
    piece.last = last;
    return piece;
  };
  using Pieces = std::vector<format::Piece>;
  CHECK((pieces_of(0, 8) == Pieces{box, rest}));
  CHECK((pieces_of(1, 3) == Pieces{cut(box, 1, 3)}));
  CHECK((pieces_of(3, 6) == Pieces{cut(box, 3, 4), cut(rest, 5, 7)}));
  CHECK((pieces_of(6, 8) == Pieces{cut(rest, 7, 9)}));
  CHECK(pieces_of(4, 4).empty());
}

}  // namespace
}  // namespace scaletrain::parallel
