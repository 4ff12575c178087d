#include "lib/dist/store.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netdb.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lib/dist/agreement.h"
#include "lib/dist/foreign_text.h"
#include "lib/dist/group.h"
#include "lib/dist/numeric_names.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;

TEST_CASE("a store of the launcher serves two attempts, and the second does not see the first") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  // The first process plays the launcher and hosts the store until the two ranks have left.
  const auto results =
      testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& given) -> std::string {
        core::WorkerEnv env = given;
        if (given.rank == 0) {
          c10d::TCPStoreOptions options;
          options.isServer = true;
          options.waitWorkers = false;
          options.masterListenFd = given.store_fd;
          options.port = static_cast<std::uint16_t>(given.master_port);
          const c10d::TCPStore server("127.0.0.1", options);
          int left = 0;
          char byte = 0;
          while (left < 2 && read(ends[0], &byte, 1) == 1) ++left;
          return left == 2 ? "hosted" : "?";
        }
        env.rank = given.rank - 1;
        env.world_size = 2;
        env.use_agent_store = true;
        std::string seen;
        for (env.restart_count = 0; env.restart_count < 2; ++env.restart_count) {
          auto store = dist::open_store(env, 10s);
          seen += store->check({"left behind"}) ? "old " : "new ";
          dist::agree(*store, {.rank = env.rank, .world_size = env.world_size}, "all", {}, 10s);
          store->set("left behind", "1");
        }
        if (write(ends[1], "x", 1) != 1) return "no pipe";
        return seen;
      });
  close(ends[0]);
  close(ends[1]);
  CHECK(results[0].text == "hosted");
  CHECK(results[1].text == "new new ");
  CHECK(results[2].text == "new new ");
}

TEST_CASE("rank 0 ends at once, and a rank that is slower to connect has still connected") {
  for (const dist::CpuExchange exchange : {dist::CpuExchange::kGloo, dist::CpuExchange::kShm}) {
    const auto results =
        testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) -> std::string {
          const dist::Group group(env, at::kCPU, 30s, core::Beat(), {}, exchange);
          return "connected";  // the store goes with rank 0
        });
    for (const testing::RankResult& result : results) CHECK(result.text == "connected");
  }
}

TEST_CASE("what LibTorch calls getnameinfo answers in digits and asks no resolver") {
  dist::use_numeric_names();
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  char host[NI_MAXHOST];
  REQUIRE(getnameinfo(reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback), host,
                      sizeof(host), nullptr, 0, 0) == 0);
  CHECK(std::string(host) == "127.0.0.1");  // /etc/hosts says localhost
  // The first definition in the program's search order, which is what libtorch_cpu is bound to.
  CHECK(dlsym(RTLD_DEFAULT, "getnameinfo") == reinterpret_cast<void*>(&getnameinfo));
}

TEST_CASE("foreign texts lose backtraces and source places") {
  CHECK(dist::foreign_text(std::runtime_error("[/gloo/pair.cc:12] closed by [::1]:9\nat f()")) ==
        "closed by [::1]:9");
  CHECK(dist::foreign_text(std::runtime_error("[::1]:9 closed")) == "[::1]:9 closed");
  CHECK(dist::foreign_text(c10::Error({"f", "f.cc", 1}, "boom")) == "boom");
}

}  // namespace
