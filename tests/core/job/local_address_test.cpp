#include "lib/core/job/local_address.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace {

using namespace scaletrain;

TEST_CASE("on one node the rendezvous is at the loopback address") {
  core::WorkerEnv env;
  env.master_port = 29500;
  env.master_addr = "127.0.0.1";
  CHECK(core::local_address(env) == "127.0.0.1");
}

TEST_CASE("a loopback address for several nodes is refused, unless they are on one host") {
  core::WorkerEnv env;
  env.master_port = 29500;
  env.master_addr = "127.0.1.1";
  env.group_world_size = 2;
  env.group_rank = 1;
  env.one_host = true;
  CHECK(core::local_address(env).starts_with("127."));
  env.one_host = false;
  try {
    core::local_address(env);
    FAIL("accepted");
  } catch (const core::UsageError& error) {
    CHECK(std::string(error.what()) ==
          "MASTER_ADDR: \"127.0.1.1\" is a loopback address on node 1\n"
          "  give an address of the first node that all nodes can reach with --master-addr");
  }
}

}  // namespace
