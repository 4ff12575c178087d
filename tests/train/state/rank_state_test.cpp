#include "lib/train/state/rank_state.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/log.h"
#include "lib/train/build/build.h"
#include "tests/dist/ranks.h"
#include "tests/train/saved_runs_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using Changes = std::vector<std::string>;

// Runs of 8 steps, saved behind the fourth.
class OwnRuns {
 public:
  explicit OwnRuns(const Changes& changes) : runs_(all_changes(changes)) {}

  recipe::Recipe recipe(const std::string& output, const Changes& more = {}) const {
    return runs_.recipe(output, more);
  }
  fs::path saved(const std::string& output, int step) const { return runs_.saved(output, step); }

  // What rank 0 says at the end, with what it warned of.
  std::string run(const std::string& output, int ranks, const std::optional<fs::path>& resume = {},
                  const Changes& more = {}) const {
    return testing::SavedRuns::run(recipe(output, more), {.ranks = ranks}, resume)[0].text;
  }

  std::map<std::string, std::string> tensors(const std::string& output, int step) const {
    return runs_.bytes(output, step);
  }

  // "exchanged_bytes" of the train lines, by step.
  std::map<int, std::int64_t> exchanged(const std::string& output) const {
    std::map<int, std::int64_t> result;
    std::ifstream stream(runs_.path(output) + "/metrics.jsonl");
    for (std::string line; std::getline(stream, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.at("event") == "train") result[json.at("step")] = json.at("exchanged_bytes");
    }
    return result;
  }

 private:
  static Changes all_changes(const Changes& changes) {
    Changes all{"steps=8",
                "model.hidden=16",
                R"(batch={"global": 8, "per_device": 2})",
                "optimizer={\"name\": \"adamw\", \"lr\": 0.01}",
                R"(validate.every={"steps": 4})",
                R"(checkpoint={"every": {"steps": 4}, "keep_last": 9, "keep_best": 0})",
                R"(log.every={"steps": 1})"};
    all.insert(all.end(), changes.begin(), changes.end());
    return all;
  }

  testing::SavedRuns runs_;
};

constexpr const char* kEndedWell = "code 0 after step 8";

struct OwnCase {
  Changes changes;
  bool has_own;  // ranks.safetensors
};

}  // namespace

TEST_CASE("two ranks go on to the same bits with each exchange") {
  const std::vector<OwnCase> cases{
      {{"compress=bf16"}, false},
      {{"compress=fp16"}, false},
      {{R"(compress={"name": "powersgd", "rank": 2})"}, true},
      {{R"(compress={"name": "powersgd", "rank": 1, "warmup": 2})"}, true},
      {{R"(compress={"name": "powersgd", "rank": 2, "warmup": 6})"}, true},
      {{"compress=onebit"}, true},
      {{"compress=int8", "precision=bf16"}, true},
      {{R"(sync={"name": "periodic", "steps": 2})"}, true},
      {{R"(sync={"name": "diloco", "steps": 4, "outer": {"lr": 0.5, "momentum": 0.8}})"}, true},
      {{R"(sync={"name": "diloco", "steps": 4, "fragments": 2})", "clip.norm=0.5"}, true},
      {{R"(sync={"name": "diloco", "steps": 3, "overlap": 1})"}, true},
  };
  for (const OwnCase& one : cases) {
    CAPTURE(one.changes.front());
    const OwnRuns runs(one.changes);
    // A CPU without AVX-512 adds the warning that bf16 is computed in fp32.
    REQUIRE(runs.run("whole", 2).starts_with(kEndedWell));
    REQUIRE(runs.run("second", 2, runs.saved("whole", 4)).starts_with(kEndedWell));
    const auto whole = runs.tensors("whole", 8), second = runs.tensors("second", 8);
    CHECK(whole.contains("ranks.safetensors") == one.has_own);
    REQUIRE(whole.size() == second.size());
    for (const auto& [file, bytes] : whole) {
      CAPTURE(file);
      const bool is_same = second.at(file) == bytes;
      CHECK(is_same);
    }
  }
}

TEST_CASE("on another mesh errors begin with zero, and replicas with one state, with a warning") {
  const OwnRuns compressed({"compress=int8"});
  REQUIRE(compressed.run("two", 2) == kEndedWell);
  CHECK(compressed.run("four", 4, compressed.saved("two", 4))
            .find("the error feedback of gradient compression starts from zero: the "
                  "checkpoint is of another mesh") != std::string::npos);
  const std::string other =
      compressed.run("other", 2, compressed.saved("two", 4), {"compress=powersgd"});
  CHECK(other.find("the error feedback of gradient compression starts from zero: ") !=
        std::string::npos);
  CHECK(other.find("the checkpoint has none") == std::string::npos);  // it has others
  CHECK(compressed.run("none", 2, compressed.saved("two", 4), {"compress=null"}) == kEndedWell);
  const OwnRuns rare({R"(sync={"name": "diloco", "steps": 4})"});
  REQUIRE(rare.run("two", 2) == kEndedWell);
  CHECK(rare.run("four", 4, rare.saved("two", 4))
            .find("all replicas continue with the optimizer state of the first one: the "
                  "checkpoint is of another mesh") != std::string::npos);
  CHECK(rare.run("every", 2, rare.saved("two", 4), {"sync=every_step"}).find("outer_momentum/") !=
        std::string::npos);  // as of another optimizer
  const OwnRuns plain({});
  REQUIRE(plain.run("two", 2) == kEndedWell);
  CHECK(plain.run("rare", 2, plain.saved("two", 4), {"sync=diloco"})
            .find("the checkpoint has no outer weights: they start from the model's weights") !=
        std::string::npos);
  CHECK(rare.run("one", 1, rare.saved("two", 4)).starts_with(kEndedWell));
}

TEST_CASE("replicas alone are one mesh, however their checkpoint wrote it") {
  const OwnRuns runs({"compress=int8"});
  REQUIRE(runs.run("two", 2) == kEndedWell);
  struct Case {
    std::vector<std::int64_t> mesh;
    const char* warned;
  };
  const std::string other =
      "warning: the error feedback of gradient compression starts from zero: the "
      "checkpoint is of another mesh";
  const std::vector<Case> cases{{{}, ""}, {{1, 2, 1, 1}, ""}, {{1, 1, 2, 1}, other.c_str()}};
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         const auto run = build_run(runs.recipe("resumed"), env, {}, {});
         std::string warned, said;
         core::set_warning_listener([&](const std::string& line) { warned += line; });
         for (const Case& one : cases) {
           run->state.mesh = one.mesh;
           restore_rank_state(*run, runs.saved("two", 4));
           if (std::exchange(warned, "") != (env.rank == 0 ? one.warned : "")) {
             said += fmt::format("{} ", one.mesh.size());
           }
         }
         run->mesh->end("end");
         return said;
       })) {
    CHECK(result.text.empty());
  }
}

TEST_CASE("a resume gives all replicas of async rank 0's state, without a word") {
  const OwnRuns runs({R"(sync={"name": "async", "steps": 4, "staleness": 0})"});
  REQUIRE(runs.run("run", 2) == kEndedWell);
  CHECK(runs.run("resumed", 2, runs.saved("run", 4)) == kEndedWell);
}

TEST_CASE("saves and validations fall on exchanges, and the end is one") {
  const OwnRuns runs({R"(sync={"name": "periodic", "steps": 3})"});
  REQUIRE(runs.run("run", 2) == kEndedWell);
  CHECK(testing::lines(runs.recipe("run").output) ==
        "train 1, train 2, train 3, train 4, train 5, train 6, eval val 6, train 7, train 8, "
        "eval val 8");
  CHECK(fs::exists(runs.saved("run", 6)));
  CHECK_FALSE(fs::exists(runs.saved("run", 4)));
  const std::int64_t weights = 4 * (16 * 192 + 16 + 3 * 16 + 3);
  CHECK(runs.exchanged("run") ==
        std::map<int, std::int64_t>{
            {1, 0}, {2, 0}, {3, weights}, {4, 0}, {5, 0}, {6, weights}, {7, 0}, {8, weights}});
}

TEST_CASE("the train lines count the bytes of gradients that a rank gives away") {
  const auto first = [](const Changes& changes) {
    const OwnRuns runs(changes);
    REQUIRE(runs.run("run", 2) == kEndedWell);
    return runs.exchanged("run");
  };
  const std::int64_t elements = 16 * 192 + 16 + 3 * 16 + 3;
  const auto each = [](std::int64_t bytes) {
    std::map<int, std::int64_t> result;
    for (int step = 1; step <= 8; ++step) result[step] = bytes;
    return result;
  };
  CHECK(first({}) == each(4 * elements));
  CHECK(first({"compress=bf16"}) == each(2 * elements));
  // 3,120 elements of matrices: 13 blocks of 256; 19 of biases.
  CHECK(first({"compress=int8"}) == each(4 * 19 + 13 * (4 + 256)));
}

TEST_CASE("replicas leave out together a step that one of them cannot take") {
  ::setenv("SCALETRAIN_FAULT", "nan@3,1", 1);
  const OwnRuns runs({R"(sync={"name": "periodic", "steps": 4})"});
  CHECK(runs.run("run", 2).starts_with(kEndedWell));
  ::unsetenv("SCALETRAIN_FAULT");
  std::ifstream state(runs.saved("run", 8) / "state.json");
  CHECK(nlohmann::json::parse(state).at("skipped_steps") == 1);
}

}  // namespace scaletrain::train
