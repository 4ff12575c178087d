#include "lib/local_sgd/fragments.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace scaletrain;
using local_sgd::divide_in_fragments;

TEST_CASE("a parameter's fragment is that of its middle, by whole shapes") {
  // 24, 8, 32 and 4 of 68 elements; of p2, of which this rank has a row, the middle is behind the
  // half.
  const std::vector<units::NamedParameter> model{
      {.name = "p0", .tensor = at::zeros({8, 3})},
      {.name = "p1", .tensor = at::zeros({8})},
      {.name = "p2", .tensor = at::zeros({8}), .shard = units::Shard{.shape = {4, 8}}},
      {.name = "p3", .tensor = at::zeros({0}), .shard = units::Shard{.shape = {4}}},
  };
  const auto of = [&](std::int64_t count) {
    const local_sgd::Fragments fragments = divide_in_fragments(model, count);
    std::string text;
    for (const auto& [name, message] : fragments.message_of) {
      text +=
          fmt::format("{} {}, ", name, fragments.of_message.at(static_cast<std::size_t>(message)));
    }
    return text;
  };
  CHECK(of(1) == "p0 0, p1 0, p2 0, p3 0, ");
  CHECK(of(2) == "p0 0, p1 0, p2 1, p3 1, ");
  CHECK(of(4) == "p0 0, p1 1, p2 2, p3 3, ");
  // 1 and 9 elements: the second's middle is at 0.55, and 0.55 of 12 is 6.6.
  const std::vector<units::NamedParameter> uneven{{.name = "p0", .tensor = at::zeros({1})},
                                                  {.name = "p1", .tensor = at::zeros({9})}};
  CHECK(divide_in_fragments(uneven, 12).of_message == std::vector<std::int64_t>{0, 6});
  CHECK(divide_in_fragments({}, 2).message_of.empty());
  CHECK(divide_in_fragments({}, 2).of_message.empty());
}

TEST_CASE("messages are of whole shapes, of one fragment and one set each") {
  constexpr std::int64_t kMost = 8 << 20;  // elements
  struct MessageCase {
    std::vector<std::int64_t> sizes;
    std::int64_t fragments;
    std::map<std::string, std::int64_t> sets;
    std::vector<std::int64_t> message_of, of_message;
  };
  const std::vector<MessageCase> cases{
      {{2, 3, 4}, 1, {}, {0, 0, 0}, {0}},
      {{2, 3, 4}, 1, {{"p1", 0}}, {0, 1, 0}, {0, 0}},
      {{2, 3, 4}, 1, {{"p0", 0}}, {0, 1, 1}, {0, 0}},
      {{2, 3, 4, 1}, 2, {}, {0, 0, 1, 1}, {0, 1}},
      {{2, 3, 4, 5}, 1, {{"p0", 1}, {"p2", 1}, {"p3", 2}}, {0, 1, 0, 2}, {0, 0, 0}},
      {{9, 1}, 3, {}, {0, 1}, {1, 2}},  // of fragment 0 there is nothing
      {{kMost, 1, 1}, 1, {{"p1", 0}}, {0, 1, 2}, {0, 0, 0}},
      {{kMost, 1}, 1, {}, {0, 1}, {0, 0}},
      {{kMost - 1, 1, 1}, 1, {}, {0, 0, 1}, {0, 0}},
  };
  for (const MessageCase& one : cases) {
    CAPTURE(one.sizes.size());
    std::vector<units::NamedParameter> model;
    for (const std::int64_t size : one.sizes) {
      // Of which this rank has nothing.
      model.push_back({.name = fmt::format("p{}", model.size()),
                       .tensor = at::zeros({0}),
                       .shard = units::Shard{.shape = {size}}});
    }
    const local_sgd::Fragments fragments = divide_in_fragments(model, one.fragments, one.sets);
    for (std::size_t i = 0; i < model.size(); ++i) {
      CHECK(fragments.message_of.at(model[i].name) == one.message_of[i]);
    }
    CHECK(fragments.of_message == one.of_message);
  }
}

}  // namespace
