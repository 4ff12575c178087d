#include "launcher/place/placement.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "launcher/place/endpoint.h"
#include "launcher/place/store_socket.h"
#include "launcher/platform/gpus.h"
#include "lib/core/error.h"
#include "lib/core/process/cores.h"

namespace scaletrain::launcher {
namespace {

std::string placement_error(const LaunchOptions& options) {
  try {
    resolve_placement(options);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("one node: the loopback address and a port that the system chooses") {
  const Placement placement = resolve_placement({.nproc = "3"});
  CHECK(placement.nproc == 3);
  CHECK(placement.world_size() == 3);
  CHECK(placement.master_addr == "127.0.0.1");
  CHECK(placement.master_port == 0);
  CHECK(placement.hosts_store());
}

TEST_CASE("several nodes: ranks follow the node, the port is torchrun's") {
  const Placement placement =
      resolve_placement({.nproc = "4", .nnodes = "3", .node_rank = "2", .master_addr = "node0"});
  CHECK(placement.world_size() == 12);
  CHECK(placement.first_rank() == 8);
  CHECK(placement.master_port == 29500);
  CHECK_FALSE(placement.hosts_store());
  const core::WorkerEnv env = worker_env(placement, 1);
  CHECK(env.rank == 9);
  CHECK(env.local_rank == 1);
  CHECK(env.world_size == 12);
  CHECK(env.local_world_size == 4);
  CHECK(env.group_rank == 2);
  CHECK(env.group_world_size == 3);
  CHECK(env.master_addr == "node0");
}

TEST_CASE("torchrun's N:N is N; a range needs rendezvous endpoints") {
  CHECK(resolve_placement({.nnodes = "1:1"}).nnodes == 1);
  CHECK(placement_error({.nnodes = "1:2"}) ==
        "--rdzv-endpoint: is missing, and --nnodes is a range\n"
        "  give every node the same HOST:PORT of one or more of the nodes: a:29400,b:29400");
  CHECK(placement_error({.nnodes = "3:2"}) ==
        "--nnodes: \"3:2\" has a minimum above its maximum\n  give MIN:MAX, such as 2:4");
  const Placement placement = resolve_placement({.nnodes = "2:4", .rdzv_endpoint = "a,b:7"});
  CHECK(placement.elastic());
  CHECK_FALSE(placement.fixed_ranks);
  CHECK(placement.min_nodes == 2);
  CHECK(placement.nnodes == 4);
  CHECK(placement.nnodes_text() == "2:4");
  REQUIRE(placement.endpoints.size() == 2);
  CHECK(to_text(placement.endpoints[0]) == "a:29400");
  CHECK(to_text(placement.endpoints[1]) == "b:7");
}

TEST_CASE("fixed nodes have numbers, unless the backend is c10d") {
  const Placement fixed =
      resolve_placement({.nnodes = "2", .node_rank = "1", .rdzv_endpoint = "a:5"});
  CHECK(fixed.fixed_ranks);
  CHECK(to_text(fixed.endpoints.at(0)) == "a:5");
  const Placement free =
      resolve_placement({.nnodes = "2", .rdzv_backend = "c10d", .rdzv_endpoint = "a:5"});
  CHECK_FALSE(free.fixed_ranks);
  CHECK_FALSE(free.elastic());
  CHECK(placement_error({.nnodes = "2", .rdzv_endpoint = "a,b"}) ==
        "--rdzv-endpoint: has several endpoints, and the number of nodes is fixed\n"
        "  give the endpoint of node 0, or use --rdzv-backend c10d");
}

TEST_CASE("--local-addr is this node's address where torchrun takes it for that") {
  CHECK(resolve_placement({.standalone = true, .local_addr = "me"}).master_addr == "me");
  CHECK(resolve_placement({.rdzv_backend = "c10d", .local_addr = "me"}).master_addr == "me");
  CHECK(resolve_placement({.local_addr = "me"}).master_addr == "127.0.0.1");
  const Placement free =
      resolve_placement({.nnodes = "2:4", .rdzv_endpoint = "a,b", .local_addr = "me"});
  CHECK(free.local_addr == "me");
  CHECK(free.master_addr == "a");  // until it is known who leads
  const Placement fixed =
      resolve_placement({.nnodes = "2", .master_addr = "a", .local_addr = "me"});
  CHECK(fixed.local_addr.empty());
  CHECK(fixed.master_addr == "a");
}

TEST_CASE("wrong flags say what is allowed") {
  CHECK(placement_error({.nproc = "many"}) ==
        "--nproc: \"many\" is not allowed\n  give a number, auto, gpu or cpu");
  CHECK(placement_error({.nproc = "0"}) ==
        "--nproc: \"0\" is not allowed\n  give a whole number from 1 to 1024");
  CHECK(placement_error({.node_rank = "1"}) ==
        "--node-rank: \"1\" is not allowed\n  give a whole number from 0 to 0");
  CHECK(placement_error({.nnodes = "2"}) ==
        "--master-addr: is missing, and there are several nodes\n"
        "  give every node the address of node 0");
  for (const char* const host : {"[::1]", " ", "a b"}) {
    const std::string found = fmt::format(": \"{}\" is not a host name or address\n", host);
    CHECK(placement_error({.master_addr = host}).starts_with("--master-addr" + found));
    CHECK(placement_error({.local_addr = host}).starts_with("--local-addr" + found));
    CHECK(placement_error({.nnodes = "1:2", .rdzv_endpoint = fmt::format("[{}]", host)})
              .starts_with("--rdzv-endpoint: "));
  }
  CHECK(placement_error({.master_addr = "127.0.0.1:5"})
            .starts_with("--master-addr: \"127.0.0.1:5\" has a port\n"));
  CHECK(placement_error({.master_port = "70000"}) ==
        "--master-port: \"70000\" is not allowed\n  give a whole number from 0 to 65535");
}

TEST_CASE("several nodes meet at an address of one node and at a port that is known") {
  const std::string remedy = "give every node the address of node 0";
  for (const char* const host : {"0.0.0.0", "::"}) {
    CHECK(placement_error({.nnodes = "2", .master_addr = host}) ==
          fmt::format("--master-addr: \"{}\" is no address of one node\n  {}", host, remedy));
    CHECK(placement_error({.master_addr = host}) == "no error");
  }
  CHECK(placement_error({.nnodes = "1:2", .rdzv_endpoint = "[::]:7"}) ==
        "--rdzv-endpoint: \"::\" is no address of one node\n  " + remedy);
  CHECK(placement_error({.nnodes = "1:2", .rdzv_endpoint = "a,b:0"}) ==
        "--rdzv-endpoint: \"b:0\" has port 0, which no other node can find\n"
        "  give every node the same port from 1 to 65535");
  CHECK(placement_error({.rdzv_backend = "c10d", .rdzv_endpoint = "localhost:0"}) == "no error");
}

TEST_CASE("cpu counts the CPUs that this process may use") {
  CHECK(resolve_placement({.nproc = "cpu"}).nproc == core::usable_cores());
  CHECK(core::usable_cores() >= 1);
}

TEST_CASE("a store listens on a free port; a fixed port that is taken is refused") {
  const StoreSocket store = listen_for_store({});
  CHECK(store.port > 0);
  Placement same;
  same.master_port = store.port;
  std::string text;
  try {
    listen_for_store(same);
  } catch (const core::UsageError& error) {
    text = error.what();
  }
  CHECK(text == "--master-port " + std::to_string(store.port) +
                    ": cannot listen on it: Address already in use (EADDRINUSE)\n"
                    "  give another port, or leave the flag out to get a free one");
}

// Returns the address that a store listens on.
std::string address_of_store(const std::string& master_addr, int nnodes) {
  Placement placement;
  placement.master_addr = master_addr;
  placement.nnodes = nnodes;
  const StoreSocket store = listen_for_store(placement);
  CHECK(store.port > 0);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  auto* const address = reinterpret_cast<sockaddr*>(&bound);
  REQUIRE(getsockname(store.fd.get(), address, &length) == 0);
  std::array<char, NI_MAXHOST> text{};
  REQUIRE(getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0);
  return text.data();
}

TEST_CASE("the store listens on the master address alone if that is one of this node") {
  CHECK(address_of_store("127.0.0.1", 1) == "127.0.0.1");
  CHECK(address_of_store("127.0.0.1", 2) == "127.0.0.1");  // launchers of one host
  CHECK(address_of_store("localhost", 1) == "127.0.0.1");
  CHECK(address_of_store("127.0.1.1", 1) == "127.0.1.1");
  if (is_own("::1")) CHECK(address_of_store("::1", 1) == "::1");
  for (const std::string& own : own_addresses()) {
    CHECK(address_of_store(own, 1) == own);
    CHECK(address_of_store(own, 2) == own);
  }
  const auto is_all = [](const std::string& address) {
    return address == "::" || address == "0.0.0.0";
  };
  CHECK(is_all(address_of_store("192.0.2.1", 1)));  // RFC 5737: the address of no machine
  CHECK(is_all(address_of_store("192.0.2.1", 2)));
  CHECK(is_all(address_of_store("localhost.", 2)));  // nodes may resolve a name differently
}

SlurmStep two_nodes() {
  return {.job = 123456, .nodes = 2, .tasks = 2, .node = 1, .hosts = {"n1", "n2"}, .gpus = 0};
}

TEST_CASE("under srun the rendezvous is at the step's first host") {
  const Placement placement = resolve_placement({.nproc = "4"}, two_nodes());
  CHECK(placement.world_size() == 8);
  CHECK(placement.first_rank() == 4);
  CHECK(placement.master_addr == "n1");
  CHECK(placement.master_port == 23456);  // 20000 + 123456 mod 10000
}

TEST_CASE("flags win over the step, and a step of one task says nothing") {
  CHECK(resolve_placement({.standalone = true}, two_nodes()).nnodes == 1);
  CHECK(resolve_placement({.nnodes = "1"}, two_nodes()).node_rank == 0);
  SlurmStep alone = two_nodes();
  alone.nodes = alone.tasks = 1;
  CHECK(resolve_placement({}, alone).master_addr == "127.0.0.1");
}

TEST_CASE("a step that does not fit is refused with the line to change") {
  const auto refusal = [](const SlurmStep& step) -> std::string {
    try {
      resolve_placement({}, step);
    } catch (const core::UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  SlurmStep step = two_nodes();
  step.tasks = 8;
  CHECK(refusal(step) ==
        "SLURM_STEP_NUM_TASKS: srun started 8 tasks on 2 nodes, and launch starts the workers of "
        "its node\n  start one task on each node: #SBATCH --ntasks-per-node=1");
  step = two_nodes();
  step.gpus = count_gpus() + 1;
  CHECK(refusal(step).find("SLURM_GPUS_ON_NODE: ") == 0);
}

}  // namespace
}  // namespace scaletrain::launcher
