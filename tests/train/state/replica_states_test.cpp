#include "lib/train/state/replica_states.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

#include "lib/train/model/buffers.h"
#include "tests/train/apart_replicas.h"

namespace scaletrain::train {

using local_sgd::StateRequest;

TEST_CASE("the mean is over the replicas that have given theirs, as copies") {
  const local_sgd::ReplicaStates replicas{
      .tensors = {{"buffers/mean", at::tensor({1.0F, 2.0F, 9.0F, 9.0F, 3.0F, 8.0F}).view({3, 2})},
                  {"model/mean", at::zeros({3, 2})}},
      .present = {0, 2}};
  const std::map<std::string, at::Tensor> own{{"mean", at::tensor({1.0F, 2.0F})},
                                              {"count", at::tensor({4}, at::kLong)}};
  const auto mean = mean_over_replicas(replicas, "buffers/", own);
  CHECK(at::equal(mean.at("mean"), at::tensor({2.0F, 5.0F})));  // (1 + 3) / 2, (2 + 8) / 2
  CHECK(at::equal(mean.at("count"), own.at("count")));
  CHECK_FALSE(mean.at("count").is_alias_of(own.at("count")));
  const bool is_float = mean.at("mean").scalar_type() == at::kFloat;
  CHECK(is_float);
}

TEST_CASE("what several ranks of a replica have too is in the mean and in the rows") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, std::chrono::seconds(30));
    // Of replicas 0, 1 and 2, of which 1 is lost: 10 r of the first rank, 10 r + 1 of the second.
    const local_sgd::ReplicaStates replicas{
        .tensors = {{"buffers/mean",
                     at::tensor({0, 0, 20}).to(at::kFloat).view({3, 1}) + env.rank}},
        .present = {0, 2}};
    const std::map<std::string, at::Tensor> own{{"mean", at::zeros({1})}};
    const double mean =
        mean_over_replicas(replicas, "buffers/", own, &group).at("mean").item<double>();
    const auto rows = gather_of_replicas(group, states_of(replicas, "buffers/"));
    std::string said = fmt::format("{}", mean);
    for (const auto& [name, all] : rows) {
      for (std::int64_t i = 0; i < all.size(0); ++i) {
        said += fmt::format(" {}", all[i][0].item<double>());
      }
    }
    return said;
  });
  CHECK(results[0].text == "10.5 0 1 0 1 20 21");  // (0 + 1 + 20 + 21) / 4
  CHECK(results[1].text == "10.5");
}

TEST_CASE("states are found by what their names begin with") {
  const local_sgd::ReplicaStates replicas{.tensors = {{"buffers/a", at::zeros({2})},
                                                      {"model/a", at::ones({2})},
                                                      {"buffers/b", at::ones({2})}},
                                          .present = {0}};
  const auto buffers = states_of(replicas, "buffers/");
  REQUIRE(buffers.size() == 2);
  CHECK(at::equal(buffers.at("a"), at::zeros({2})));
  CHECK(buffers.contains("b"));
  CHECK(local_sgd::ReplicaStates().empty());
  CHECK_FALSE(replicas.empty());
}

TEST_CASE("rank 0 gets the requested states of the present replicas") {
  const auto results = testing::run_apart({}, [](testing::ApartReplica& replica) {
    Run& run = *replica.run;
    std::string said;
    for (const StateRequest request :
         {StateRequest::kSave, StateRequest::kNothing, StateRequest::kEvaluation}) {
      run.replicas->share(replica.rank == 0 ? request : StateRequest::kNothing);
      said += replica.given() + "; ";
    }
    if (replica.rank == 2) std::raise(SIGKILL);
    run.replicas->share(StateRequest::kEvaluation);
    said += replica.given();
    run.replicas->finish();
    return said;
  });
  CHECK(results[0].text ==
        "buffers/seen [0 1 2] optimizer/momentum_buffer/weight [0 0 0] 012; nothing; buffers/seen "
        "[0 1 2] "
        "012; buffers/seen [0 1 0] 01");
  CHECK(results[1].text == "nothing; nothing; nothing; nothing");
}

TEST_CASE("weights that always differ are evaluated, and saved once") {
  const std::string sync = R"(sync={"name": "diloco", "steps": 4, "fragments": 2})";
  const auto results = testing::run_apart({sync}, [](testing::ApartReplica& replica) {
    std::string said;
    for (const StateRequest request : {StateRequest::kEvaluation, StateRequest::kSave}) {
      replica.run->replicas->share(request);
      said += replica.given() + "; ";
    }
    replica.run->replicas->finish();
    return said;
  });
  CHECK(results[0].text ==
        "buffers/seen [0 1 2] model/weight [0 1 2] 012; buffers/seen [0 1 2] model/weight [0 1 2] "
        "optimizer/momentum_buffer/weight [0 0 0] 012; ");
}

}  // namespace scaletrain::train
