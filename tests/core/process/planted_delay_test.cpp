#include "lib/core/process/planted_delay.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "lib/core/error.h"

using scaletrain::core::DelayPlace;
using scaletrain::core::parse_delay;
using scaletrain::core::planted_faults;
using scaletrain::core::UsageError;

TEST_CASE("a delay names its place, its first visit, perhaps its rank, and its length") {
  const auto delay = parse_delay("slow-optimizer@3,1=25");
  REQUIRE(delay);
  CHECK(delay->place == DelayPlace::kOptimizer);
  CHECK(delay->first == 3);
  CHECK(delay->rank == 1);
  CHECK(delay->milliseconds == 25);
  const auto on_any_rank = parse_delay("slow-evaluation@1=40");
  REQUIRE(on_any_rank);
  CHECK(on_any_rank->place == DelayPlace::kEvaluation);
  CHECK(!on_any_rank->rank);
}

TEST_CASE("faults of other kinds are no delays") {
  for (const std::string fault : {"", "kill@3", "slow@2", "slow-data@1", "kill@3,1,vote"}) {
    CAPTURE(fault);
    CHECK(!parse_delay(fault));
  }
}

TEST_CASE("a delay of another form is refused") {
  for (const std::string fault :
       {"slow-batch", "slow-batch@1", "slow-batch@=5", "slow-batch@0=5", "slow-batch@1,=5",
        "slow-batch@1,x=5", "slow-batch@1=", "slow-batch@1=-5", "slow-batch=5@1"}) {
    CAPTURE(fault);
    CHECK_THROWS_AS(parse_delay(fault), UsageError);
  }
}

TEST_CASE("the environment variable holds faults of all kinds") {
  ::setenv("SCALETRAIN_FAULT", "kill@3,1;slow-copy@1=5", 1);
  CHECK(planted_faults() == std::vector<std::string>{"kill@3,1", "slow-copy@1=5"});
  ::unsetenv("SCALETRAIN_FAULT");
  CHECK(planted_faults().empty());
}
