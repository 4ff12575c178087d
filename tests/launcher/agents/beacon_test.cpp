#include "launcher/agents/beacon.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/launcher/agents/agents_support.h"

namespace scaletrain::launcher {
namespace {

const Candidate kHere{.agent = "b", .host = "host-b", .addresses = {"10.0.0.2"}, .port = 7};

// Whether a leader of generation 2 leaves its address in the cluster's store.
bool leaves_address(Cluster& cluster, const JobTerms& terms) {
  leave_address(*cluster.leader_store, terms, 2, kHere);
  const std::optional<std::string> moved = cluster.leader_store->get("moved");
  if (moved) CHECK(parse<Candidate>(*moved).addresses == kHere.addresses);
  return moved.has_value();
}

TEST_CASE("a newcomer that leads alone is redirected to the job") {
  Cluster cluster(elastic_terms(2, 4));
  cluster.lead("a");
  cluster.run(milliseconds(1000));
  CHECK(leaves_address(cluster, cluster.terms));
}

TEST_CASE("a leader that has a round, or goes before, is left alone") {
  Cluster round(elastic_terms(1, 2));
  round.lead("a");
  round.join("c");
  round.run(milliseconds(500));
  REQUIRE(round.leader->state().nodes == 2);
  CHECK_FALSE(leaves_address(round, round.terms));

  Cluster later(elastic_terms(2, 4));
  later.lead("a", -1, 2);
  CHECK_FALSE(leaves_address(later, later.terms));
}

TEST_CASE("another job's store is left alone, and one that nobody leads") {
  Cluster cluster(elastic_terms(2, 4));
  cluster.lead("a");
  JobTerms other = cluster.terms;
  other.name = "other";
  CHECK_THROWS_AS(leaves_address(cluster, other), core::UsageError);
  CHECK_FALSE(cluster.leader_store->get("moved").has_value());

  MemoryStore empty(std::make_shared<Table>());
  leave_address(empty, cluster.terms, 2, kHere);
  CHECK_FALSE(empty.get("moved").has_value());
}

}  // namespace
}  // namespace scaletrain::launcher
