#include "lib/report/placed_rows.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/dist/ranks.h"

namespace scaletrain::report {
namespace {

// Behind 2^24, the first number that one column of fp32 does not hold together with its neighbours.
constexpr std::int64_t kFirst = (std::int64_t{3} << 24) - 1;
constexpr std::int64_t kRows = 5, kRowsOfBlock = 2;

// What is gathered of five samples of which the third is bad, whose rows are {i, -i}.
std::string gathered_rows(const core::WorkerEnv& env) {
  dist::Group group(env, at::kCPU, std::chrono::seconds(20));
  PlacedRows rows(2);
  for (std::int64_t begin = env.rank * kRowsOfBlock; begin < kRows;
       begin += env.world_size * kRowsOfBlock) {
    data::Batch batch;
    batch.position = kFirst + begin;
    std::vector<double> numbers;
    for (std::int64_t i = begin; i < std::min(begin + kRowsOfBlock, kRows); ++i) {
      if (i == 2) {
        data::BadSample bad;
        bad.position = kFirst + i;
        batch.skipped.push_back(bad);
        continue;
      }
      numbers.push_back(static_cast<double>(i));
      numbers.push_back(static_cast<double>(-i));
    }
    batch.count = std::ssize(numbers) / 2;
    rows.add(batch, at::tensor(numbers).view({batch.count, 2}));
  }
  const PlacedRows::All all = rows.gather(group);
  group.end("end");
  std::string text = fmt::format("{}:", fmt::join(all.rows.sizes(), "x"));
  for (std::size_t i = 0; i < all.positions.size(); ++i) {
    const at::Tensor row = all.rows[static_cast<std::int64_t>(i)];
    text += fmt::format(" {}={},{}", all.positions[i] - kFirst, row[0].item<float>(),
                        row[1].item<float>());
  }
  return text;
}

}  // namespace

TEST_CASE("rows of all ranks come in the order of the set with their positions") {
  for (const int ranks : {1, 2, 3}) {
    for (const auto& result :
         testing::run_ranks({.world_size = ranks},
                            [](const core::WorkerEnv& env) { return gathered_rows(env); })) {
      CHECK(result.text == "4x2: 0=0,0 1=1,-1 3=3,-3 4=4,-4");
    }
  }
}

TEST_CASE("the positions of a batch leave out its bad samples") {
  data::Batch batch;
  batch.position = 7;
  batch.count = 3;
  for (const std::int64_t position : {7, 9}) {
    data::BadSample bad;
    bad.position = position;
    batch.skipped.push_back(bad);
  }
  CHECK(positions_of(batch) == std::vector<std::int64_t>{8, 10, 11});
}

}  // namespace scaletrain::report
