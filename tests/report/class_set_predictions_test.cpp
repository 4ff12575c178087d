#include "lib/report/class_set_predictions.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "tests/dist/ranks.h"

namespace scaletrain::report {
namespace {

// Sample 0 has classes 0 and 1, sample 1 has none.
std::string gathered_sets(const core::WorkerEnv& env) {
  dist::Group group(env, at::kCPU, std::chrono::seconds(20));
  ClassSetPredictions predictions(2);
  for (std::int64_t at = env.rank; at < 2; at += env.world_size) {
    data::Batch batch;
    batch.position = at;
    batch.count = 1;
    const float there = at == 0 ? 1.0F : 0.0F;
    predictions.add(batch, at::tensor({there, there}).view({1, 2}),
                    at::tensor({0.0F, at == 0 ? 40.0F : -200.0F}).view({1, 2}));
  }
  const ClassSetPredictions::All all = predictions.gather(group);
  group.end("end");
  return class_set_csv({"a", "b"}, all, {"cat"});
}

}  // namespace

TEST_CASE("every sample has its classes and a probability for each class") {
  for (const int ranks : {1, 2}) {
    for (const auto& result :
         testing::run_ranks({.world_size = ranks},
                            [](const core::WorkerEnv& env) { return gathered_sets(env); })) {
      CHECK(result.text ==
            "key,labels,predicted,probability_cat,probability_1\r\n"
            "a,\"[\"\"cat\"\",\"\"1\"\"]\",\"[\"\"1\"\"]\",0.5,1\r\n"
            "b,[],[],0.5,0\r\n");
    }
  }
}

TEST_CASE("a set without samples has the head alone") {
  const ClassSetPredictions::All none{.positions = {},
                                      .targets = at::tensor(std::vector<double>{}).view({0, 1}),
                                      .shares = at::tensor(std::vector<double>{}).view({0, 1})};
  CHECK(class_set_csv({}, none, {}) == "key,labels,predicted,probability_0\r\n");
}

}  // namespace scaletrain::report
