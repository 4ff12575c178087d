#include "lib/train/loop/trainer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/core/process/signals.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/load.h"
#include "lib/train/build/build.h"
#include "tests/count_reads.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using testing::ended;
using testing::lines;

// metrics.jsonl without what the clock says, and when checkpoints were written.
std::string lines_of(const std::string& folder) {
  std::ifstream file(folder + "/metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line);
    if (json.at("event") == "checkpoint" || json.at("event") == "ledger") continue;
    for (const char* measured :
         {"samples_per_s", "data_time", "compute_time", "read_time", "decode_time", "augment_time",
          "memory_bytes", "time", "format", "step_flops", "tflops_per_s"}) {
      json.erase(measured);
    }
    text += json.dump() + "\n";
  }
  return text;
}

struct Trained {
  std::string lines;
  std::vector<std::string> said;  // by each rank
};

// 24 steps on two ranks: a line every 3, an evaluation every 7, checks of slow ranks after 10 and
// 20, a save every 11.
Trained train(bool late) {
  const testing::TinyRun tiny;
  Trained trained;
  for (const auto& result :
       testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& given) {
         core::WorkerEnv env = given;
         env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
         Trainer trainer(build_run(tiny.recipe({"steps=24", "log.every={\"steps\": 3}",
                                                "validate.every={\"steps\": 7}",
                                                "checkpoint.every={\"steps\": 11}"}),
                                   env, std::nullopt, {}),
                         env, std::nullopt, late);
         core::ExitCode code{};
         const int reads = testing::count_reads([&] { code = trainer.run(); });
         return fmt::format("{} reads, exit code {}", reads, static_cast<int>(code));
       })) {
    trained.said.push_back(result.text);
  }
  trained.lines = lines_of(tiny.path("run"));
  return trained;
}

std::string digest(const fs::path& checkpoint) { return format::model_digest(checkpoint); }

}  // namespace

TEST_CASE("what is written is the same where everything comes late, and nothing is waited for") {
  const Trained now = train(false), late = train(true);
  CHECK(now.lines == late.lines);
  CHECK(std::count(now.lines.begin(), now.lines.end(), '\n') == 9 + 4);  // 1, 3, 6 ...; 7 ... 24
  CHECK(now.said == late.said);
  CHECK(late.said == std::vector<std::string>(2, "0 reads, exit code 0"));
}

// Ten samples are one batch, and the rank that has none of it does not run the model meanwhile.
TEST_CASE("weights that ranks gather of each other are there before one of them validates alone") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe(
      {testing::kVitChange, R"(parallel={"shard": 2, "shard_level": "gradients"})",
       R"(batch={"global": 20, "per_device": 10})", "steps=3", R"(validate.every={"steps": 1})"});
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         return ended(recipe, std::nullopt, env);
       })) {
    CHECK(result.text == "code 0 after step 3");
  }
  CHECK(lines(tiny.path("run")) == "train 1, eval val 1, eval val 2, train 3, eval val 3");
}

TEST_CASE("a run trains, validates and saves when that is due, and says that it is done") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({"log={\"every\":{\"steps\":2}}", "validate={\"every\":{\"steps\":3}}",
                   "checkpoint={\"every\":{\"steps\":2}}"});
  CHECK(testing::said_apart([&] { return ended(recipe); }) == "code 0 after step 4");
  const fs::path run = recipe.output;
  CHECK(lines(run) == "train 1, train 2, eval val 3, train 4, eval val 4");
  for (const int step : {2, 4}) {
    CHECK(fs::exists(format::checkpoint_path(run / "checkpoints", step)));
  }
  CHECK_FALSE(fs::exists(format::checkpoint_path(run / "checkpoints", 1)));
  CHECK(fs::exists(run / "finished.json"));
}

TEST_CASE("a run that is asked to stop saves and leaves; the one that goes on ends with its bits") {
  // One without a state of its own shape, one that is evaluated and saved with other weights, one
  // whose state is not of floats.
  for (const char* const optimizer :
       {R"({"name": "sgd", "lr": 0.1, "momentum": 0.9})", R"({"name": "adafactor", "lr": 0.1})",
        R"({"name": "schedule_free_adamw", "lr": 0.1})",
        R"({"name": "adamw_8bit", "lr": 0.1, "min_8bit_size": 0})"}) {
    CAPTURE(optimizer);
    const testing::TinyRun tiny;
    const std::string change = fmt::format("optimizer={}", optimizer);
    const recipe::Recipe whole = tiny.recipe({change, "output=" + tiny.path("whole")});
    CHECK(testing::said_apart([&] { return ended(whole); }) == "code 0 after step 4");

    const recipe::Recipe cut = tiny.recipe({change});
    CHECK(testing::said_apart([&] {
            core::install_stop_handlers();
            std::raise(SIGTERM);
            return ended(cut);
          }) == "code 75 after step 1");
    const fs::path checkpoints = fs::path(cut.output) / "checkpoints";
    CHECK_FALSE(fs::exists(fs::path(cut.output) / "finished.json"));
    CHECK(testing::said_apart([&] {
            return ended(cut, format::checkpoint_path(checkpoints, 1));
          }) == "code 0 after step 4");
    const fs::path last = format::checkpoint_path(fs::path(whole.output) / "checkpoints", 4);
    CHECK(digest(format::checkpoint_path(checkpoints, 4)) == digest(last));
  }
}

TEST_CASE("a mean of the weights is looked at beside them, tested, and goes on to the same bits") {
  const testing::TinyRun tiny;
  const auto recipe = [&](const std::string& output) {
    return tiny.recipe({"steps=6", "ema={\"decay\": 0.8, \"warmup\": true}",
                        "data.test.shards=" + tiny.path("val.tar"), "checkpoint.keep_best=0",
                        "validate.every={\"steps\": 3}", "checkpoint.every={\"steps\": 2}",
                        "output=" + tiny.path(output)});
  };
  const auto mean_of = [&](const std::string& output, int step) {
    const fs::path checkpoint =
        format::checkpoint_path(fs::path(tiny.path(output)) / "checkpoints", step);
    std::ifstream file(checkpoint / "ema.safetensors", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  // The second step is left out: its mean counts one update.
  setenv("SCALETRAIN_FAULT", "nan@2", 1);
  CHECK(testing::said_apart([&] { return ended(recipe("whole")); }) == "code 0 after step 6");
  unsetenv("SCALETRAIN_FAULT");
  CHECK(lines(tiny.path("whole")) ==
        "train 1, eval val 3, eval ema/val 3, train 6, eval val 6, eval ema/val 6, eval test 6");
  const fs::path middle = format::checkpoint_path(fs::path(tiny.path("whole")) / "checkpoints", 4);
  CHECK(format::read_state(middle).ema_updates == 3);
  CHECK(testing::said_apart([&] { return ended(recipe("second"), middle); }) ==
        "code 0 after step 6");
  CHECK(!mean_of("whole", 6).empty());
  CHECK(mean_of("whole", 6) == mean_of("second", 6));
  CHECK(mean_of("whole", 6) != mean_of("whole", 4));

  std::map<std::string, double> losses;
  std::ifstream stream(tiny.path("whole") + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") == "checkpoint" || json.at("event") == "ledger") continue;
    losses[json.value("split", "train")] = json.at("loss").get<double>();
  }
  CHECK(losses.at("test") == losses.at("ema/val"));
  CHECK(losses.at("test") != losses.at("val"));
}

TEST_CASE(
    "the best is chosen by the mean of the weights, or by the model where that is asked for") {
  const testing::TinyRun tiny;
  for (const std::string weights : {"ema", "model"}) {
    const recipe::Recipe recipe =
        tiny.recipe({"ema={\"decay\": 0.8}", "checkpoint.best={\"metric\": \"loss\"}",
                     "checkpoint.best.weights=" + weights, "output=" + tiny.path(weights)});
    CHECK(testing::said_apart([&] { return ended(recipe); }) == "code 0 after step 4");
    const format::TrainState state =
        format::read_state(format::checkpoint_path(fs::path(recipe.output) / "checkpoints", 4));
    CHECK(state.best_by == (weights == "ema" ? "ema/loss" : "loss"));
    std::ifstream stream(recipe.output + "/metrics.jsonl");
    for (std::string line; std::getline(stream, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.value("split", "") != (weights == "ema" ? "ema/val" : "val")) continue;
      CHECK(json.at("loss").get<double>() == state.best_metric);
    }
  }
}

TEST_CASE(
    "a run that gets no better ends early as one that is done, also where it was interrupted") {
  const testing::TinyRun tiny;
  const auto recipe = [&](const std::string& output) {
    return tiny.recipe({"steps=9", "early_stopping={\"patience\": 2, \"min_delta\": 1}",
                        "validate.every={\"steps\": 1}", "output=" + tiny.path(output)});
  };
  // The first validation is the best; two more are no better by more than 1.
  CHECK(testing::said_apart([&] { return ended(recipe("whole")); }) == "code 0 after step 3");
  std::ifstream finished(tiny.path("whole") + "/finished.json");
  const auto json = nlohmann::json::parse(finished);
  CHECK(json.at("step") == 3);
  CHECK(json.at("early").get<std::string>().ends_with(" in 2 validations"));

  CHECK(testing::said_apart([&] {
          core::install_stop_handlers();
          std::raise(SIGTERM);
          return ended(recipe("cut"));
        }) == "code 75 after step 1");
  const fs::path checkpoints = fs::path(tiny.path("cut")) / "checkpoints";
  CHECK(testing::said_apart([&] {
          return ended(recipe("cut"), format::checkpoint_path(checkpoints, 1));
        }) == "code 0 after step 3");
  fs::remove(tiny.path("cut") + "/finished.json");  // killed before it was written
  CHECK(testing::said_apart([&] {
          return ended(recipe("cut"), format::checkpoint_path(checkpoints, 3));
        }) == "code 0 after step 3");
}

TEST_CASE("a run whose activations are computed again ends with the bits of one that keeps them") {
  const testing::TinyRun tiny;
  const auto digest_with = [&](const std::string& name, const std::string& recompute) {
    const recipe::Recipe recipe =
        tiny.recipe({"output=" + tiny.path(name), "model.dropout=0.3", recompute});
    CHECK(testing::said_apart([&] { return ended(recipe); }) == "code 0 after step 4");
    return digest(format::checkpoint_path(fs::path(recipe.output) / "checkpoints", 4));
  };
  CHECK(digest_with("again", "recompute=all") == digest_with("kept", "recompute=null"));
}

// Gradients of about 2^40 are too large for fp16 until the scale has been halved some twenty times.
TEST_CASE("a loss scale that is too high is found, step by step, and is no divergence") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe(
      {"steps=48", R"(precision={"name": "fp16", "init_scale": 1e12})", "log.every.steps=1"});
  CHECK(testing::said_apart([&] { return ended(recipe); }) == "code 0 after step 48");
  std::vector<double> scales;
  std::ifstream stream(recipe.output + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") != "train") continue;
    scales.push_back(json.at("loss_scale"));
    CHECK(json.at("loss").is_number());
  }
  REQUIRE(scales.size() == 48);
  CHECK(scales[0] == doctest::Approx(1e12));
  for (std::size_t i = 0; i < 10; ++i) CHECK(scales[i + 1] == scales[i] / 2);
  CHECK(scales[46] == scales[47]);
  const format::TrainState state =
      format::read_state(format::checkpoint_path(fs::path(recipe.output) / "checkpoints", 48));
  CHECK(state.skipped_steps > 10);
  CHECK(state.skipped_steps < 40);
  CHECK(state.scaler.at("scale") == scales[47]);
  CHECK(state.scaler.at("growth_tracker") > 0);
}

TEST_CASE("in fp16 too a run without finite losses ends as diverged") {
  const testing::TinyRun tiny;
  setenv("SCALETRAIN_FAULT", "nans@2", 1);
  const std::string said = testing::said_apart([&] {
    return ended(tiny.recipe({"steps=12", "precision=fp16"}));
  });
  unsetenv("SCALETRAIN_FAULT");
  CHECK(said.starts_with("step 11: loss or gradients were not finite in 10 steps in a row"));
}

TEST_CASE("where memory runs out the error says what a step takes, and what would need less") {
  const testing::TinyRun tiny;
  const auto said = [&](const char* fault) {
    setenv("SCALETRAIN_FAULT", fault, 1);
    const std::string text = testing::said_apart([&] {
      return ended(tiny.recipe({testing::kVitChange, "batch.per_device=4"}));
    });
    unsetenv("SCALETRAIN_FAULT");
    fs::remove_all(tiny.path("run"));
    return text;
  };
  const std::string text = said("oom@2");
  CAPTURE(text);
  CHECK(
      text.starts_with("rank 0: step 2: CUDA out of memory. Tried to allocate 2.00 GiB.; a "
                       "step's tensors: parameters 0.2 MB, gradients 0.2 MB, optimizer 0.2 MB, "
                       "activations "));
  CHECK(text.find("MB\n  each of these needs about so much less: ") != std::string::npos);
  CHECK(text.find(R"( MB: "recompute": "all"; )") != std::string::npos);
  CHECK(text.ends_with(R"( MB: "batch": {"per_device": 2, "accumulate": 2})"));
  CHECK(said("oom@1").find("activations not measured yet") != std::string::npos);
  // A bug is none of memory.
  CHECK(said("throw@1") == "a fault was asked for");
}

TEST_CASE("a run whose steps are not finite ends as diverged, and counts those left out before") {
  const testing::TinyRun tiny;
  const auto with_fault_at = [&](const char* fault) {
    setenv("SCALETRAIN_FAULT", fault, 1);
    const std::string said = testing::said_apart([&] { return ended(tiny.recipe({"steps=12"})); });
    unsetenv("SCALETRAIN_FAULT");
    fs::remove_all(tiny.path("run"));
    return said;
  };
  // From step 2 on: the tenth in a row is step 11.
  CHECK(with_fault_at("nans@2").starts_with(
      "step 11: loss or gradients were not finite in 10 steps in a row"));
  CHECK(with_fault_at("nans@4") == "code 0 after step 12");  // nine
  CHECK(with_fault_at("nan@3") == "code 0 after step 12");
}

}  // namespace scaletrain::train
