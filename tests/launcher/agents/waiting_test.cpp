#include "launcher/agents/waiting.h"

#include <doctest/doctest.h>

#include "tests/launcher/agents/agents_support.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("a waiting node logs why the job runs without it") {
  const AgentTiming timing;
  JobState state;
  state.phase = Phase::kRunning;
  const auto told = [&](int nodes, int most, const std::set<int>& fits) {
    state.nodes = nodes;
    return waiting_text(state, false, fits, elastic_terms(1, most), timing);
  };
  CHECK(told(2, 2, {1, 2}) ==
        "the job runs on 2 nodes, without this one: --nnodes 1:2 takes no more");
  CHECK(told(2, 4, {1, 2, 4}) ==
        "the job runs on 2 nodes, without this one: the batch does not divide among the ranks of 3 "
        "nodes, but of 1, 2, 4");
  CHECK(told(2, 4, {1, 2, 3, 4}) ==
        "the job runs on 2 nodes; this one joins after the last call, 30 s");
  CHECK(waiting_text(state, true, {1, 2}, elastic_terms(1, 2), timing) == "");
}

}  // namespace
}  // namespace scaletrain::launcher
