#include "lib/dist/agreement.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/process/host_name.h"
#include "lib/dist/group.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using core::ExitCode;
using dist::Claim;

std::vector<Claim> claims_of(const std::string& lr, const std::string& digest) {
  return {{.field = "optimizer.lr of the recipe",
           .value = lr,
           .code = ExitCode::kUsage,
           .remedy = "give all the same recipe"},
          {.field = "the digest of the training set",
           .value = digest,
           .code = ExitCode::kData,
           .remedy = "give all the same files"}};
}

// Three ranks, of which rank `odd` claims `other`.
std::vector<testing::RankResult> joined(int odd, const std::vector<Claim>& other) {
  return testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) -> std::string {
    dist::Group group(env, at::kCPU, 30s, core::Beat(),
                      env.rank == odd ? other : claims_of("0.05", "aa"));
    group.agree("again", {});
    group.end("end");  // the store goes with rank 0, and the others may not have read its verdict
    return "agreed";
  });
}

void check_all(const std::vector<testing::RankResult>& results, const std::string& text, int code) {
  for (const auto& result : results) {
    CHECK(result.text == text);
    CHECK(result.status == code);
    CHECK(result.seconds < 15);  // rank 0 stays until the others know
  }
}

TEST_CASE("ranks that claim the same join; what one does not know agrees with all") {
  check_all(joined(1, claims_of("0.05", "aa")), "agreed", 0);
  check_all(joined(2, claims_of("0.05", "")), "agreed", 0);
  check_all(joined(0, claims_of("0.05", "")), "agreed", 0);
}

TEST_CASE("the first claim that differs ends all ranks, with rank, host and both values") {
  const std::string host = core::host_name();
  check_all(joined(2, claims_of("0.5", "bb")),
            fmt::format("rank 2 on host {}: optimizer.lr of the recipe is 0.5; on rank 0 (host {}) "
                        "it is 0.05\n  give all the same recipe",
                        host, host),
            2);
  check_all(joined(1, claims_of("0.05", "bb")),
            fmt::format("rank 1 on host {}: the digest of the training set is bb; on rank 0 (host "
                        "{}) it is aa\n  give all the same files",
                        host, host),
            65);
}

TEST_CASE("a claim that one rank does not make differs, on either side") {
  const std::string host = core::host_name();
  const std::vector<Claim> one{claims_of("0.05", "aa").front()};
  const std::string field = "the digest of the training set is ";
  check_all(joined(1, one),
            fmt::format("rank 1 on host {}: {}unset; on rank 0 (host {}) it is aa\n"
                        "  give all the same files",
                        host, field, host),
            65);
  check_all(joined(0, one),
            fmt::format("rank 1 on host {}: {}aa; on rank 0 (host {}) it is unset\n"
                        "  start the same program with the same recipe on every node",
                        host, field, host),
            2);
}

TEST_CASE("a rank with another kind of device is reported before anything is connected") {
  const auto results =
      testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
        dist::Group group(env, env.rank == 1 ? at::kMeta : at::kCPU, 30s);
        return "formed";
      });
  const std::string host = core::host_name();
  check_all(results,
            fmt::format("rank 1 on host {}: the kind of device is meta; on rank 0 (host {}) it is "
                        "cpu\n  ask for one kind: \"device\": \"cpu\" or \"cuda\"",
                        host, host),
            2);
}

TEST_CASE("what one rank claims alone is compared with nothing") {
  dist::Group group({}, at::kCPU, 1s, core::Beat(), claims_of("0.05", "aa"));
  group.agree("again", claims_of("0.5", "bb"));
}

}  // namespace
