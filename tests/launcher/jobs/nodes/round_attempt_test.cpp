#include "launcher/jobs/nodes/round_attempt.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

TEST_CASE("an attempt is where and how the state says that its round runs") {
  Session::View view;
  view.rank = 2;
  view.state.round = 1;
  view.state.nodes = 3;
  view.state.restart = 4;
  view.state.store_port = 4001;
  view.state.plan = "plan";
  view.state.one_host = true;
  view.state.replicas = {"x@1@h"};
  for (const std::string& host : {host_name(), std::string("another"), host_name()}) {
    view.state.candidates.push_back({.agent = "a", .host = host, .addresses = {}, .port = 1});
  }
  const Placement asked{.nproc = 2, .nnodes = 5, .min_nodes = 1, .master_addr = "given"};
  Attempt attempt = round_attempt(view, asked, "found", 7);
  CHECK(attempt.placement.nproc == 2);
  CHECK(attempt.placement.nnodes == 3);
  CHECK(attempt.placement.node_rank == 2);
  CHECK(attempt.placement.master_addr == "given");
  CHECK(attempt.placement.master_port == 4001);
  CHECK(attempt.restart == 4);
  CHECK(attempt.max_restarts == 7);
  CHECK(attempt.first);
  CHECK(attempt.plan == "plan");
  CHECK(attempt.one_host);
  CHECK(attempt.launchers_here == 2);
  CHECK(attempt.replicas == view.state.replicas);

  view.state.round = 2;
  Placement numbered = asked;
  numbered.fixed_ranks = false;
  attempt = round_attempt(view, numbered, "found", 7);
  CHECK_FALSE(attempt.first);
  CHECK(attempt.placement.master_addr == "found");
  view.state.store_host = "store";
  CHECK(round_attempt(view, numbered, "found", 7).placement.master_addr == "store");
  CHECK(round_attempt(view, asked, "found", 7).placement.master_addr == "store");
}

}  // namespace
}  // namespace scaletrain::launcher
