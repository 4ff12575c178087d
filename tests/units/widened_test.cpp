#include "lib/units/widened.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

using namespace scaletrain;

TEST_CASE("sums are made in fp32 at least, and in fp64 of such values") {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble}) {
    const at::ScalarType wanted = type == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor values = at::full({3}, 2, type);
    CHECK((units::wide_type(values) == wanted));
    CHECK((units::widened(values).scalar_type() == wanted));
    CHECK(units::widened(values).eq(2).all().item<bool>());
  }
}
