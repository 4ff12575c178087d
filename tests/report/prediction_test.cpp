#include "lib/report/prediction.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tests/dist/ranks.h"

namespace scaletrain::report {
namespace {

constexpr std::int64_t kBlock = 2;

// What is gathered of samples 0 to 4 of which 2 is bad: sample p is of class p mod 3, and the model
// says so with a logit of p.
std::string gathered(const core::WorkerEnv& env) {
  dist::Group group(env, at::kCPU, std::chrono::seconds(20));
  Predictions predictions(3);
  for (std::int64_t begin = env.rank * kBlock; begin < 5; begin += env.world_size * kBlock) {
    data::Batch batch;
    batch.position = begin;
    std::vector<float> logits;
    std::vector<std::int64_t> labels;
    for (std::int64_t at = begin; at < std::min<std::int64_t>(begin + kBlock, 5); ++at) {
      if (at == 2) {
        data::BadSample bad;
        bad.position = at;
        batch.skipped.push_back(bad);
        continue;
      }
      labels.push_back(at % 3);
      for (std::int64_t i = 0; i < 3; ++i) {
        logits.push_back(i == at % 3 ? static_cast<float>(at) : 0.0F);
      }
    }
    batch.count = std::ssize(labels);
    predictions.add(batch, at::tensor(labels), at::tensor(logits).view({batch.count, 3}));
  }
  const Predictions::All all = predictions.gather(group);
  group.end("end");
  std::string text;
  for (const Prediction& one : all.predictions) {
    text += fmt::format("{}:{}:{}:{:.4f} ", one.position, one.label, one.top.size(),
                        one.top.front().probability);
  }
  return text + fmt::format("{}", fmt::join(all.logits.sizes(), "x"));
}

}  // namespace

TEST_CASE("predictions come from all ranks in the order of the set, bad samples left out") {
  const auto share = [](double logit) { return std::exp(logit) / (std::exp(logit) + 2); };
  const std::string expected =
      fmt::format("0:0:3:{:.4f} 1:1:3:{:.4f} 3:0:3:{:.4f} 4:1:3:{:.4f} 4x3", share(0), share(1),
                  share(3), share(4));
  for (const int ranks : {1, 2, 3}) {
    for (const auto& result : testing::run_ranks(
             {.world_size = ranks}, [](const core::WorkerEnv& env) { return gathered(env); })) {
      CHECK(result.text == expected);
    }
  }
}

TEST_CASE("the likeliest classes come first, no more than there are") {
  const at::Tensor logits = at::tensor({0.0F, 2.0F, 1.0F}).view({1, 3});
  const at::Tensor labels = at::tensor({2}).to(at::kLong);
  const std::vector<Prediction> two = predict(logits, labels, {7}, 2);
  REQUIRE(two.size() == 1);
  CHECK(two[0].position == 7);
  CHECK(two[0].label == 2);
  CHECK_FALSE(two[0].is_right());
  CHECK(two[0].top.size() == 2);
  CHECK(two[0].top[0].class_number == 1);
  CHECK(two[0].top[1].class_number == 2);
  const double sum = 1 + std::exp(1) + std::exp(2);
  CHECK(two[0].top[0].probability == doctest::Approx(std::exp(2) / sum));
  CHECK(two[0].loss == doctest::Approx(-std::log(std::exp(1) / sum)));
  CHECK(predict(logits, labels, {7}, 9)[0].top.size() == 3);
}

}  // namespace scaletrain::report
