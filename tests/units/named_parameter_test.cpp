#include "lib/units/named_parameter.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::units {

TEST_CASE("a piece in one dimension has the dimensions of its logical tensor") {
  const at::Tensor whole = at::zeros({4, 3});
  CHECK(NamedParameter{.name = "weight", .tensor = whole}.dimensions() == 2);
  CHECK(
      NamedParameter{
          .name = "weight", .tensor = whole.flatten().narrow(0, 6, 5), .shape = {4, 3}, .begin = 6}
          .dimensions() == 2);
  CHECK(NamedParameter{.name = "bias", .tensor = at::zeros({4})}.dimensions() == 1);
}

}  // namespace scaletrain::units
