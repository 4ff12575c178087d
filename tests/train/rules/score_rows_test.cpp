#include "lib/train/rules/score_rows.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/dist/ranks.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kBlock = 3;

// Rows (position, 100 + position) of `samples` samples whose blocks of 3 go to the ranks in turn,
// as they come out on this rank.
std::string gathered(const core::WorkerEnv& env, std::int64_t samples, std::int64_t columns) {
  dist::Group group(env, at::kCPU, std::chrono::seconds(20));
  ScoreRows scores(columns);
  for (std::int64_t begin = env.rank * kBlock; begin < samples; begin += env.world_size * kBlock) {
    const at::Tensor places =
        at::arange(begin, std::min(begin + kBlock, samples), at::kFloat).unsqueeze(1);
    if (columns > 0) scores.add(at::cat({places, places + 100}, 1), begin);
  }
  const at::Tensor all = scores.gather(group);
  group.end("end");
  if (!all.defined()) return "undefined";
  const at::Tensor flat = all.flatten().contiguous();
  const auto* const values = flat.const_data_ptr<float>();
  return fmt::format("{}: {}", fmt::join(all.sizes(), "x"),
                     fmt::join(std::vector<float>(values, values + flat.numel()), " "));
}

}  // namespace

TEST_CASE("rows come to every rank in the order of the samples, also from ranks that have fewer") {
  struct Case {
    std::int64_t samples, columns;
    const char* expected;
  };
  const std::vector<Case> cases{{7, 2, "7x2: 0 100 1 101 2 102 3 103 4 104 5 105 6 106"},
                                {2, 2, "2x2: 0 100 1 101"},  // all of them rank 0's
                                {0, 2, "0x2: "},
                                {7, 0, "undefined"}};
  for (const Case& item : cases) {
    for (const int ranks : {1, 2, 3}) {
      for (const auto& result :
           testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
             return gathered(env, item.samples, item.columns);
           })) {
        CHECK(result.text == item.expected);
      }
    }
  }
}

}  // namespace scaletrain::train
