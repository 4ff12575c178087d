#include "lib/train/rules/fault.h"

#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/error.h"

using scaletrain::core::UsageError;
using scaletrain::train::commit_fault;
using scaletrain::train::Fault;
using scaletrain::train::parse_fault;
using scaletrain::train::with_fault;

TEST_CASE("a fault names its kind, its step and perhaps its rank") {
  const auto any = parse_fault("nan@12");
  REQUIRE(any);
  CHECK(any->kind == Fault::Kind::kNan);
  CHECK(any->step == 12);
  CHECK(!any->rank);
  CHECK(parse_fault("kill@3,1")->rank == 1);
  CHECK(parse_fault("kill@3,1")->kind == Fault::Kind::kKill);
}

TEST_CASE("a planted spike multiplies the loss of its step on its rank by 1000") {
  const auto spike = parse_fault("spike@3,1");
  CHECK(scaletrain::train::planted_loss_factor(spike, 3, 1) == 1000);
  CHECK(scaletrain::train::planted_loss_factor(spike, 3, 0) == 1);
  CHECK(scaletrain::train::planted_loss_factor(spike, 4, 1) == 1);
  CHECK(scaletrain::train::planted_loss_factor(parse_fault("nan@3"), 3, 1) == 1);
  CHECK_FALSE(commit_fault(spike, 3, 1));
}

TEST_CASE("anything else is refused") {
  for (const std::string text : {"", "nan", "nan@", "nan@x", "oops@3", "nan@3,", "nan@3,x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_fault(text), UsageError);
  }
}

TEST_CASE("the variable's fault at a collective is another's") {
  const auto read = [](const char* text) {
    ::setenv("SCALETRAIN_FAULT", text, 1);
    const bool is_one = scaletrain::train::read_fault().has_value();
    ::unsetenv("SCALETRAIN_FAULT");
    return is_one;
  };
  CHECK(read("kill@3,1"));
  CHECK(!read("kill@3,1,vote"));
}

TEST_CASE("a fault happens at its step and rank only") {
  const auto fault = parse_fault("nan@3,1");
  CHECK(commit_fault(fault, 3, 1));
  CHECK(!commit_fault(fault, 2, 1));
  CHECK(!commit_fault(fault, 3, 0));
  CHECK(commit_fault(parse_fault("nan@3"), 3, 0));
  CHECK(!commit_fault(std::nullopt, 3, 0));
  CHECK(!commit_fault(parse_fault("nans@3"), 2, 0));
  CHECK(commit_fault(parse_fault("nans@3"), 4, 0));
}

TEST_CASE("throw throws") {
  CHECK_THROWS_WITH(commit_fault(parse_fault("throw@1"), 1, 0), "a fault was asked for");
  CHECK_THROWS_AS(commit_fault(parse_fault("oom@1"), 1, 0), c10::OutOfMemoryError);
}

TEST_CASE("a pool is stuck or slow from its n-th buffer on, on the rank that is meant only") {
  const auto taken_in = [](const std::string& fault, int rank) {
    const auto pool = with_fault(scaletrain::core::make_host_pool(), parse_fault(fault), rank);
    const auto start = scaletrain::core::now();
    for (int i = 0; i < 3; ++i) pool->take(64);
    return scaletrain::core::seconds_since(start);
  };
  CHECK(taken_in("slow-data@2,1", 1) > 0.1);  // two of three
  CHECK(taken_in("slow-data@2,1", 0) < 0.1);
  CHECK(taken_in("stuck-data@4,1", 1) < 0.1);
}
