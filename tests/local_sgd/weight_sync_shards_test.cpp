// Which parameters replicas exchange together (lib/local_sgd/weight_sync.h): a fragment at its
// steps, and of it so much in a message.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/local_sgd/weight_sync.h"
#include "lib/units/memory_meter.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using local_sgd::WeightSync;
using testing::run_ranks;

std::vector<units::NamedParameter> zeros_of(const std::vector<std::int64_t>& sizes) {
  std::vector<units::NamedParameter> result;
  for (const std::int64_t size : sizes) {
    result.push_back({.name = fmt::format("p{}", result.size()), .tensor = at::zeros({size})});
  }
  return result;
}

TEST_CASE("a parameter belongs to the fragment in which its middle lies") {
  struct FragmentCase {
    std::vector<std::int64_t> sizes;
    std::int64_t fragments;
    std::vector<std::int64_t> expected;  // by parameter
  };
  const std::vector<FragmentCase> cases{
      {{2, 4, 2}, 2, {0, 1, 1}},  // the second's is at 4 of 8, where the second fragment begins
      {{2, 3, 3}, 2, {0, 0, 1}},  // at 3.5 of 8
      {{1, 1, 1, 1}, 4, {0, 1, 2, 3}},
      {{9, 1}, 3, {1, 2}},
  };
  for (const FragmentCase& one : cases) {
    CAPTURE(one.sizes.size());
    const auto results = run_ranks({.world_size = 1}, [&](const core::WorkerEnv& env) {
      at::set_num_threads(1);
      dist::Group group(env, at::kCPU, 30s);
      const auto all = zeros_of(one.sizes);
      // An exchange takes what it is of back to zeros; fragment i's is after step i.
      dist::Mesh mesh(group, core::MeshPlan(1));
      WeightSync exchange({.sync = {.name = "diloco",
                                    .steps = one.fragments,
                                    .outer = {.lr = 0, .momentum = 0},
                                    .fragments = one.fragments},
                           .total_steps = 1000},
                          all, local_sgd::divide_in_fragments(all, one.fragments), mesh);
      exchange.start();
      std::vector<std::int64_t> found(all.size(), -1);
      for (std::int64_t step = 0; step < one.fragments; ++step) {
        for (const auto& parameter : all) parameter.tensor.fill_(1);
        exchange.after_step(step);
        for (std::size_t i = 0; i < all.size(); ++i) {
          if (all[i].tensor.eq(0).all().item<bool>()) found[i] = step;
        }
      }
      return fmt::format("{}", found);
    });
    CHECK(results[0].text == fmt::format("{}", one.expected));
  }
}

TEST_CASE("a message is of 32 MiB at most, or of one parameter, and of one set") {
  constexpr std::int64_t kMost = 8 << 20;  // elements
  struct MessageCase {
    std::vector<std::int64_t> sizes;
    std::int64_t largest;
    std::map<std::string, std::int64_t> sets = {};
  };
  const std::vector<MessageCase> cases{{{kMost / 2, kMost / 2, 1}, kMost},
                                       {{kMost / 2, kMost / 2 + 1}, kMost / 2 + 1},
                                       {{1, kMost + 1, 1}, kMost + 1},
                                       {{1, 2, 4, 8}, 10, {{"p0", 1}, {"p2", 1}}},
                                       {{1, 2, 4, 8}, 9, {{"p1", 1}, {"p2", 2}}}};
  for (const MessageCase& one : cases) {
    CAPTURE(one.largest);
    const auto results = run_ranks({.world_size = 1}, [&](const core::WorkerEnv& env) {
      at::set_num_threads(1);
      dist::Group group(env, at::kCPU, 30s);
      const auto all = zeros_of(one.sizes);
      const local_sgd::Fragments fragments = local_sgd::divide_in_fragments(all, 1, one.sets);
      dist::Mesh mesh(group, core::MeshPlan(1));
      WeightSync exchange({.sync = {.name = "periodic", .steps = 1}, .total_steps = 1000}, all,
                          fragments, mesh);
      exchange.start();
      const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
      const units::MemoryWatch watch(meter);
      exchange.after_step(0);
      return fmt::format("{}", meter->peak().total());
    });
    CHECK(results[0].text == fmt::format("{}", 4 * one.largest));
  }
}

}  // namespace
