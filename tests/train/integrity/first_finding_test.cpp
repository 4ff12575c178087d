#include "lib/train/integrity/first_finding.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/dist/ranks.h"

namespace scaletrain::train {

TEST_CASE("the finding of the lowest rank that has one reaches all ranks") {
  for (const std::vector<std::string>& own : std::vector<std::vector<std::string>>{
           {"", "", ""}, {"", "of rank 1", "of rank 2"}, {"of rank 0", "", ""}, {"", "", "last"}}) {
    std::string first;
    for (const std::string& text : own) {
      if (first.empty()) first = text;
    }
    for (const auto& rank : testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
           dist::Group group(env, at::kCPU, std::chrono::seconds(30));
           std::string found =
               first_finding(group, own[static_cast<std::size_t>(env.rank)], "a finding");
           group.end("the end");
           return found;
         })) {
      CHECK(rank.text == first);
      CHECK(rank.status == 0);
    }
  }
}

}  // namespace scaletrain::train
