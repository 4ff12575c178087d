#include "lib/parallel/part_gather.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

TEST_CASE("a block comes together from parts on the device and from those on the host, alike") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    dist::Group ranks(env, at::kCPU, 60s);
    std::string text;
    for (const bool from_host : {false, true}) {
      parallel::PartGather gather(ranks, from_host);
      const at::Tensor given = at::full({3}, 1.5 + ranks.rank());
      const at::Tensor part = gather.copy_of(given);
      given.zero_();
      units::HostUpdate update;
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor whole = at::zeros({6}, type);
        gather.gather(whole, part, from_host ? &update : nullptr).wait();
        text += fmt::format("{} {} ", whole[0].item<double>(), whole[5].item<double>());
      }
      text += fmt::format("{}; ", gather.sent_bytes());  // 3 x 4 and 3 x 2
    }
    return text;
  });
  for (const auto& result : results) {
    CHECK(result.text == "1.5 2.5 1.5 2.5 18; 1.5 2.5 1.5 2.5 18; ");
  }
}

TEST_CASE("a part on the host whose update has failed is not gathered") {
  dist::Group alone({}, at::kCPU, 1s);
  parallel::PartGather gather(alone, /*from_host=*/true);
  units::HostUpdate update;
  update.begin();
  update.end(std::make_exception_ptr(std::runtime_error("the disk")));
  CHECK_THROWS_WITH(gather.gather(at::zeros({2}), at::ones({2}), &update), "the disk");
}

}  // namespace
