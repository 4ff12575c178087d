#include "launcher/commands/prove/tolerances.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {

TEST_CASE("sums in another order are compared in fp32, or in fp64 with BatchNorm") {
  for (const char* const precision : {"fp32", "tf32", "bf16", "pure_bf16", "fp16", "fp8"}) {
    CAPTURE(precision);
    CHECK(sum_order(precision, false).precision == "fp32");
    CHECK(sum_order(precision, false).tolerance == 1e-6);
    CHECK(sum_order(precision, true).precision == "fp64");
  }
  CHECK(sum_order("fp64", false).precision == "fp64");
  CHECK(sum_order("fp64", false).tolerance == 1e-12);
}

TEST_CASE("a compression that rounds more has a larger tolerance") {
  CHECK(compression_tolerance("fp16") < compression_tolerance("bf16"));
  CHECK(compression_tolerance("bf16") < compression_tolerance("int8"));
  CHECK(compression_tolerance("int8") < compression_tolerance("powersgd"));
  CHECK(compression_tolerance("powersgd") == compression_tolerance("onebit"));
}

}  // namespace scaletrain::launcher
