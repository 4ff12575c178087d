#include "lib/parallel/sync/fragments.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace {

using namespace scaletrain;
using parallel::divide_in_fragments;

TEST_CASE("a parameter's fragment is that of its middle, by whole shapes") {
  // 24, 8, 32 and 4 of 68 elements; of p2, of which this rank has a row, the middle is behind the
  // half.
  const std::vector<units::NamedParameter> model{
      {.name = "p0", .tensor = at::zeros({8, 3})},
      {.name = "p1", .tensor = at::zeros({8})},
      {.name = "p2", .tensor = at::zeros({8}), .shape = {4, 8}},
      {.name = "p3", .tensor = at::zeros({0}), .shape = {4}},
  };
  using Of = std::map<std::string, std::int64_t>;
  CHECK(divide_in_fragments(model, 1).of == Of{{"p0", 0}, {"p1", 0}, {"p2", 0}, {"p3", 0}});
  CHECK(divide_in_fragments(model, 2).of == Of{{"p0", 0}, {"p1", 0}, {"p2", 1}, {"p3", 1}});
  CHECK(divide_in_fragments(model, 4).of == Of{{"p0", 0}, {"p1", 1}, {"p2", 2}, {"p3", 3}});
  CHECK(divide_in_fragments(model, 2).sets.empty());
  CHECK(divide_in_fragments(model, 2).set_of("p0") == 0);
  CHECK(divide_in_fragments({}, 2).of.empty());
}

}  // namespace
