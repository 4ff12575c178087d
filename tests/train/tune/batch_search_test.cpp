#include "lib/train/tune/batch_search.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/recipe/ranks.h"
#include "lib/train/build/build.h"
#include "lib/train/tune/step_costs.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

using Numbers = std::vector<std::int64_t>;

// What is found where numbers up to `most` fit, and what was tried for it.
std::string found(const Numbers& candidates, std::int64_t most) {
  std::string tried;
  const auto result = largest_that_fits(candidates, [&](std::int64_t samples) {
    tried += fmt::format(" {}", samples);
    return samples <= most;
  });
  return fmt::format("{}:{}", result.value_or(0), tried);
}

recipe::Recipe automatic(const testing::TinyRun& tiny, std::int64_t memory_mb) {
  return tiny.recipe(
      {testing::kVitChange, fmt::format("batch={{\"per_device\": \"auto\", \"global\": 12, "
                                        "\"memory_mb\": {}}}",
                                        memory_mb)});
}

std::unique_ptr<Run> found_run(const recipe::Recipe& recipe, const core::WorkerEnv& env) {
  return build_run(recipe, env, std::nullopt, {}, nn::built_in_factories(),
                   [&](Run& run) { choose_per_device(run, env, nn::built_in_factories()); });
}

int most_samples = 0;  // that the model below has memory for

// Runs out of memory, or of something else where `most_samples` is below 0.
class Limited : public nn::Model {
 public:
  Limited() : weight_(register_parameter("weight", at::zeros({3, 3 * 8 * 8}))) {}
  std::vector<units::Unit> units() override {
    return {unit("all", {""}, [this](units::Flow flow, const units::Context&) -> units::Flow {
      if (most_samples < 0) throw std::runtime_error("its own");
      if (flow[0].size(0) > most_samples) C10_THROW_ERROR(OutOfMemoryError, "there is no more");
      return {flow[0].flatten(1).matmul(weight_.t())};
    })};
  }
  void initialise(const std::string& /*name*/, const at::Tensor& logical,
                  at::Generator /*generator*/) const override {
    logical.zero_();
  }

 private:
  at::Tensor weight_;
};

const nn::Factories& limited_models() {
  static const nn::Factories models = [] {
    nn::Factories result("model");
    result.add("mlp", [](const recipe::Model&, std::int64_t) -> std::shared_ptr<nn::Model> {
      return std::make_shared<Limited>();
    });
    return result;
  }();
  return models;
}

// A rank that looks for its batch before anything else is built.
struct Looking {
  Looking(const recipe::Recipe& recipe, const core::WorkerEnv& env) {
    run.recipe = recipe;
    run.group = std::make_unique<dist::Group>(env, at::kCPU, std::chrono::seconds(30));
    run.mesh = std::make_unique<dist::Mesh>(*run.group, core::MeshPlan(env.world_size));
    choose_per_device(run, env, limited_models());
  }

  Run run;
};

recipe::Recipe automatic_mlp(const testing::TinyRun& tiny, int global,
                             std::vector<std::string> changes = {}) {
  changes.push_back(
      fmt::format(R"(batch={{"per_device": "auto", "global": {}, "memory_mb": 1000}})", global));
  return tiny.recipe(changes);
}

std::string megabytes_of(const recipe::Recipe& recipe) {
  return testing::said_apart([&] {
    const auto use = measure_first_steps(recipe, {}, nn::built_in_factories());
    return fmt::format("{}", use.total() / 1000000);
  });
}

}  // namespace

TEST_CASE("all ranks take the most that fits, and a run that goes on takes that again") {
  const testing::TinyRun tiny;
  // Between what steps of 3 and of 6 samples take, each accumulated twice.
  const std::int64_t three = std::stoll(megabytes_of(tiny.recipe(
                         {testing::kVitChange, "batch={\"per_device\": 3, \"accumulate\": 2}"}))),
                     six = std::stoll(megabytes_of(tiny.recipe(
                         {testing::kVitChange, "batch={\"per_device\": 6, \"accumulate\": 1}"})));
  REQUIRE(six > three + 1);
  const recipe::Recipe recipe = automatic(tiny, three + 1);
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         const auto run = found_run(recipe, env);
         return fmt::format("{} x {} of {}, kept {}", run->batch.per_device, run->batch.accumulate,
                            run->recipe.batch.per_device, run->state.auto_per_device);
       })) {
    CHECK(result.text == "3 x 2 of 3, kept 3");
  }
  // Two would fit as well: it is what the checkpoint says, as long as it divides.
  const auto again = [&](std::int64_t before) {
    return testing::said_apart([&] {
      Run run;
      run.recipe = recipe;
      run.group = std::make_unique<dist::Group>(core::WorkerEnv(), at::kCPU,
                                                std::chrono::milliseconds(1000));
      run.mesh = std::make_unique<dist::Mesh>(*run.group, core::MeshPlan(1));
      run.state.auto_per_device = before;
      choose_per_device(run, {}, nn::built_in_factories());
      return fmt::format("{} {}", run.recipe.batch.per_device, run.state.auto_per_device);
    });
  };
  CHECK(again(2) == "2 2");
  CHECK(again(5) == "3 3");
}

TEST_CASE("where nothing ends the search, or nothing fits, that is an error") {
  const testing::TinyRun tiny;
  const auto error_of = [&](const recipe::Recipe& recipe) {
    return testing::said_apart([&] {
      found_run(recipe, {});
      return std::string("built");
    });
  };
  recipe::Recipe open = automatic(tiny, 1);  // as with "device": "auto" on a machine without a GPU
  open.batch.memory_mb.reset();
  CHECK(error_of(open) ==
        "/batch/per_device: \"auto\" has no end on a CPU, which shares its memory\n"
        "  add \"memory_mb\": N, what the tensors of a rank may take");
  CHECK(error_of(automatic(tiny, 1))
            .starts_with("/batch/per_device: not even a step of 1 sample at a time fits: it "
                         "takes 1."));
}

TEST_CASE("memory that runs out ends the search, on the rank that has least for all ranks") {
  const testing::TinyRun tiny;
  const auto log_of = [&](int most) {
    return testing::logged_apart([&] {
      most_samples = most;
      Looking(automatic_mlp(tiny, 12), {});
    });
  };
  CHECK(log_of(2) ==
        "batch.per_device is 2 of 12: a step takes 0.0 MB, and batch.memory_mb allows 1000\n");
  CHECK(log_of(0).starts_with(
      "error: /batch/per_device: not even a step of 1 sample at a time fits: it takes more than "
      "there is\n"));
  CHECK(log_of(-1) == "error: its own");
  const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    most_samples = env.rank == 0 ? 6 : 2;
    const std::string path = tiny.path(fmt::format("log-{}", env.rank));
    dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    const Looking rank(automatic_mlp(tiny, 12), env);
    return fmt::format("{} {}", rank.run.state.auto_per_device,
                       std::filesystem::file_size(path) > 0 ? "said" : "silent");
  });
  CHECK(results[0].text == "2 said");
  CHECK(results[1].text == "2 silent");
}

TEST_CASE("a trial reads the training set alone, and no more of it than a step does") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      automatic_mlp(tiny, 24,
                    {"data.val.shards=" + tiny.path("no-val.tar"),  // of 24 samples
                     "data.test.shards=" + tiny.path("no-test.tar"),
                     "data.extra.more.shards=" + tiny.path("no-more.tar")});
  CHECK(testing::logged_apart([&] {
          most_samples = 24;
          Looking(recipe, {});
        }) ==
        "batch.per_device is 24 of 24: a step takes 0.0 MB, and batch.memory_mb allows 1000\n");
}

TEST_CASE("a global batch that ranks cannot share, or that has no pairs to mix, is an error") {
  const testing::TinyRun tiny;
  CHECK(testing::logged_apart([&] { Looking(automatic_mlp(tiny, 3, {"mix.mixup=0.2"}), {}); }) ==
        "error: /batch/global: 3 gives 1 ranks no micro-batch that the model can train on, or of "
        "pairs\n  use a multiple of 2");
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         most_samples = 24;
         Looking(automatic_mlp(tiny, 13), env);
         return std::string("found");
       })) {
    CHECK(result.text.starts_with("/batch/global: 13 is not a multiple of 2 ranks"));
  }
}

TEST_CASE("it is said what was found takes, and what a larger one would") {
  const testing::TinyRun tiny;
  const std::string log = testing::logged_apart([&] { found_run(automatic(tiny, 4), {}); });
  CAPTURE(log);
  int chosen = 0, next = 0;
  double takes = 0, would_take = 0;
  REQUIRE(std::sscanf(log.c_str(),
                      "batch.per_device is %d of 12: a step takes %lf MB, one of %d samples %lf "
                      "MB, and batch.memory_mb allows 4",
                      &chosen, &takes, &next, &would_take) == 4);
  CHECK(takes <= 4);
  CHECK(would_take > 4);
  CHECK(next > chosen);
}

TEST_CASE("what takes steps only has nothing to find a batch by") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          build_run(automatic(tiny, 1), {}, std::nullopt, {});
          return std::string("built");
        }) ==
        "/batch/per_device: \"auto\" is found when training begins\n"
        "  use a number: --set batch.per_device=N");
}

TEST_CASE("the search doubles until something does not fit, and halves what is left") {
  const Numbers divisors{1, 2, 3, 4, 6, 8, 12, 24};
  CHECK(found(divisors, 100) == "24: 1 2 4 8 24");
  CHECK(found(divisors, 24) == "24: 1 2 4 8 24");
  CHECK(found(divisors, 12) == "12: 1 2 4 8 24 12");
  CHECK(found(divisors, 7) == "6: 1 2 4 8 6");
  CHECK(found(divisors, 3) == "3: 1 2 4 3");
  CHECK(found(divisors, 1) == "1: 1 2");
  CHECK(found(divisors, 0) == "0: 1");
  CHECK(found({1, 2, 3, 4, 5, 6, 7, 8, 9}, 5) == "5: 1 2 4 8 6 5");
  CHECK(found({}, 5) == "0:");
  CHECK(found({7}, 7) == "7: 7");
}

TEST_CASE("candidates divide what a rank has of the global batch") {
  const testing::TinyRun tiny;
  const auto candidates = [&](std::vector<std::string> changes, int readers) {
    changes.emplace_back(R"(batch={"per_device": "auto", "global": 24, "memory_mb": 100})");
    return batch_candidates(tiny.recipe(changes), readers);
  };
  CHECK(candidates({}, 2) == Numbers{1, 2, 3, 4, 6, 12});
  CHECK(candidates({"mix.mixup=0.2"}, 2) == Numbers{2, 4, 6, 12});
  CHECK(candidates({R"(model={"name": "resnet18", "num_classes": 3})"}, 3) == Numbers{2, 4, 8});
  const recipe::Recipe growing =
      tiny.recipe({R"(batch={"per_device": "auto", "global": 24, "memory_mb": 100,
                             "ramp": {"start": 12, "increment": 6, "samples": 9}})"});
  CHECK(batch_candidates(growing, 2) == Numbers{1, 3});
}

}  // namespace scaletrain::train
