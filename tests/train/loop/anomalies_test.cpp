// Anomalous steps end to end: a planted NaN and a planted spike with each policy, on one rank and
// on two; a run that is resumed before or after the step ends with the bits of the whole one.
#include "lib/train/loop/anomalies.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/safetensors/safetensors.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/trainer.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train::anomalies_test {
namespace {

namespace fs = std::filesystem;
using Changes = std::vector<std::string>;
using Files = std::map<std::string, std::string>;

constexpr int kSteps = 14, kAnomaly = 8;

struct Case {
  std::string fault;  // SCALETRAIN_FAULT; "" for none
  std::string anomaly = R"("policy": "skip")";
  int ranks = 1;
  Changes changes = {};
  bool late = false;  // the result of a step is read after the next one is queued
};

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A run in the folder `name` of its own data, of which each checkpoint is kept.
class Runs {
 public:
  explicit Runs(Case one) : case_(std::move(one)) {}

  // Returns what the ranks say at the end, "; " between them.
  std::string run(const std::string& name, const std::optional<int>& from = {}) const {
    std::optional<fs::path> resume;
    if (from) resume = checkpoint(name, *from);
    std::string said;
    for (const auto& rank :
         testing::run_ranks({.world_size = case_.ranks}, [&](const core::WorkerEnv& given) {
           if (!case_.fault.empty()) setenv("SCALETRAIN_FAULT", case_.fault.c_str(), 1);
           core::WorkerEnv env = case_.ranks == 1 ? core::WorkerEnv{} : given;
           env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
           Trainer trainer(build_run(recipe(name), env, resume, {}), env, resume, case_.late);
           const auto code = trainer.run();
           return fmt::format("code {} after step {}", static_cast<int>(code), trainer.step());
         })) {
      said += (said.empty() ? "" : "; ") + rank.text;
    }
    return said;
  }

  // Resumes from step `from` in a folder that has the run's checkpoints up to it.
  std::string run_on(const std::string& name, const std::string& of, int from) const {
    fs::create_directories(folder(name) / "checkpoints");
    for (int step = 1; step <= from; ++step) {
      if (fs::exists(checkpoint(of, step))) {
        fs::copy(checkpoint(of, step), checkpoint(name, step), fs::copy_options::recursive);
      }
    }
    return run(name, from);
  }

  recipe::Recipe recipe(const std::string& name) const {
    Changes all{fmt::format("steps={}", kSteps),
                R"(batch={"global": 4, "per_device": 2})",
                R"(optimizer={"name": "adamw", "lr": 0.01})",
                "ema={\"decay\": 0.5}",
                "validate.every={\"steps\": 5}",
                R"(checkpoint={"every": {"steps": 3}, "keep_last": 20})",
                "log.every={\"steps\": 1}",
                "output=" + folder(name).string()};
    if (!case_.anomaly.empty()) {
      all.push_back(fmt::format(R"(anomaly={{"window": 4, "spike": 25, {}}})", case_.anomaly));
    }
    all.insert(all.end(), case_.changes.begin(), case_.changes.end());
    return tiny_.recipe(all);
  }

  fs::path folder(const std::string& name) const { return tiny_.path(name); }
  fs::path checkpoint(const std::string& name, int step) const {
    return format::checkpoint_path(folder(name) / "checkpoints", step);
  }
  format::TrainState state(const std::string& name, int step) const {
    return format::read_state(checkpoint(name, step));
  }
  Files tensors(const std::string& name, int step) const {
    Files files;
    for (const auto& file : fs::directory_iterator(checkpoint(name, step))) {
      if (file.path().extension() == ".safetensors") {
        files[file.path().filename()] = bytes_of(file.path());
      }
    }
    return files;
  }
  // The tensors of all files without the files' metadata, which have the step.
  Files values(const std::string& name, int step) const {
    Files result;
    for (const auto& file : tensors(name, step)) {
      const format::SafetensorsFile stored(checkpoint(name, step) / file.first);
      for (const format::TensorInfo& info : stored.tensors()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(info.end - info.begin));
        stored.read(info, bytes);
        result[file.first + "/" + info.name] =
            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
    }
    return result;
  }
  // The events of this kind in the journal.
  std::vector<nlohmann::json> events(const std::string& name, const std::string& kind) const {
    std::vector<nlohmann::json> result;
    std::ifstream stream(folder(name) / "journal.jsonl");
    for (std::string line; std::getline(stream, line);) {
      nlohmann::json event = nlohmann::json::parse(line);
      if (event.at("event") == kind) result.push_back(std::move(event));
    }
    return result;
  }
  std::map<int, double> rates(const std::string& name) const {
    std::map<int, double> result;
    std::ifstream stream(folder(name) / "metrics.jsonl");
    for (std::string line; std::getline(stream, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.at("event") == "train") result[json.at("step")] = json.at("lr");
    }
    return result;
  }

 private:
  testing::TinyRun tiny_;
  Case case_;
};

std::string ends(int ranks) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("{}code 0 after step {}", rank == 0 ? "" : "; ", kSteps);
  }
  return text;
}

struct Expected {
  std::string policy;
  bool spike = false;  // otherwise a NaN
  int skipped = 1;     // TrainState::skipped_steps at the end
  std::int64_t anomalies = 1;
};

}  // namespace

TEST_CASE(
    "each policy handles a NaN and a spike on 1 and 2 ranks, and a resume ends with its bits") {
  for (const auto& [policy, spike, skipped, anomalies] :
       std::vector<Expected>{{"skip", false},
                             {"skip", true},
                             {"clip", false},
                             {"clip", true, 0, 0},
                             {"reduce_lr", false},
                             {"reduce_lr", true},
                             {"rollback", false, 2},
                             {"rollback", true, 2}}) {
    for (const int ranks : {1, 2}) {
      const int culprit = ranks - 1;
      const Case one{.fault = fmt::format("{}@{},{}", spike ? "spike" : "nan", kAnomaly, culprit),
                     .anomaly = fmt::format(R"("policy": "{}")", policy),
                     .ranks = ranks};
      CAPTURE(policy);
      CAPTURE(one.fault);
      const Runs runs(one);
      REQUIRE(runs.run("whole") == ends(ranks));
      const format::TrainState state = runs.state("whole", kSteps);
      CHECK(state.skipped_steps == skipped);
      CHECK(state.anomalies == anomalies);

      const auto events = runs.events("whole", "anomaly");
      REQUIRE(events.size() == 1);
      const nlohmann::json& event = events[0];
      CHECK(event.at("step") == kAnomaly);
      CHECK(event.at("policy") == policy);
      CHECK(event.at("skipped") == (policy != "clip" || !spike));
      CHECK(event.at("rank") == culprit);
      CHECK(event.value("unit", "") == (spike ? "" : "input"));
      CHECK(event.at("samples") == 4 / ranks);
      REQUIRE(event.at("keys").size() == static_cast<std::size_t>(4 / ranks));
      CHECK(event.at("keys")[0].get<std::string>().starts_with("train.tar/0"));
      CHECK(event.at("kind") == (spike ? "loss and gradient norm spike" : "not finite"));

      // From before the anomaly, which it meets again, and from after it.
      for (const int from : {6, 9}) {
        CAPTURE(from);
        const std::string name = fmt::format("from{}", from);
        REQUIRE(runs.run_on(name, "whole", from) == ends(ranks));
        const bool is_same = runs.tensors(name, kSteps) == runs.tensors("whole", kSteps);
        CHECK(is_same);
        format::TrainState again = runs.state(name, kSteps);
        again.trained_s = state.trained_s;
        again.seen_s = state.seen_s;
        CHECK(format::render_state(again) == format::render_state(state));
      }
    }
  }
}

TEST_CASE("a step that is skipped leaves weights, averages and optimizer state as they were") {
  for (const char* const fault : {"nan@8", "spike@8"}) {
    CAPTURE(fault);
    const Runs runs({.fault = fault, .changes = {R"(checkpoint.every={"steps": 1})"}});
    REQUIRE(runs.run("run") == ends(1));
    const bool is_same = runs.values("run", 7) == runs.values("run", 8);
    CHECK(is_same);
    const bool goes_on = runs.values("run", 8) != runs.values("run", 9);
    CHECK(goes_on);
  }
}

TEST_CASE(
    "a rollback has the weights of the last checkpoint, saves them and skips what was between") {
  for (const Changes& changes : {Changes{}, Changes{R"(parallel={"shard": 2})"},
                                 Changes{R"(model={"name": "resnet18", "num_classes": 3})"}}) {
    CAPTURE(changes.size());
    const Runs runs(
        {.fault = "nan@8,1", .anomaly = R"("policy": "rollback")", .ranks = 2, .changes = changes});
    REQUIRE(runs.run("run") == ends(2));
    REQUIRE(fs::exists(runs.checkpoint("run", 8)));
    const bool is_same = runs.values("run", 6) == runs.values("run", 8);
    CHECK(is_same);
    const format::TrainState state = runs.state("run", 8);
    CHECK(state.skipped_ranges == std::vector<std::vector<std::int64_t>>{{7, 8}});
    CHECK(state.samples == 32);  // the data order goes on
    const auto events = runs.events("run", "rolled_back");
    REQUIRE(events.size() == 1);
    CHECK(events[0].at("step") == 8);
    CHECK(events[0].at("checkpoint") == 6);
  }
}

TEST_CASE("before the first checkpoint a rollback only leaves the step out") {
  const Runs runs({.fault = "nan@2", .anomaly = R"("policy": "rollback")"});
  REQUIRE(runs.run("run") == ends(1));
  CHECK(runs.state("run", kSteps).skipped_steps == 1);
  CHECK(runs.state("run", kSteps).skipped_ranges.empty());
  CHECK(runs.events("run", "rolled_back").empty());
}

TEST_CASE("reduce_lr halves the learning rate from the second step after an anomaly on") {
  const Runs runs({.fault = "spike@8", .anomaly = R"("policy": "reduce_lr")"});
  REQUIRE(runs.run("run") == ends(1));
  const std::map<int, double> rates = runs.rates("run");
  CHECK(rates.at(9) == 0.01);
  for (int step = 10; step <= kSteps; ++step) CHECK(rates.at(step) == 0.005);
}

TEST_CASE("clip takes the step with gradients of the bound's norm; the weights are others then") {
  const Runs clipped({.fault = "spike@8", .anomaly = R"("policy": "clip")"});
  const Runs skipped({.fault = "spike@8"});
  REQUIRE(clipped.run("run") == ends(1));
  REQUIRE(skipped.run("run") == ends(1));
  const bool before = clipped.values("run", 6) == skipped.values("run", 6);
  CHECK(before);
  const bool after = clipped.values("run", 9) == skipped.values("run", 9);
  CHECK_FALSE(after);
}

TEST_CASE("stop ends the run as diverged at the step, with its evidence in the journal") {
  for (const int ranks : {1, 2}) {
    const Runs runs({.fault = "nan@8", .anomaly = R"("policy": "stop")", .ranks = ranks});
    const std::string said = runs.run("run");
    CHECK(
        said.starts_with("step 8: the step is anomalous, and /anomaly/policy is stop; not "
                         "finite: loss nan, gradient norm nan\n"));
    REQUIRE(runs.events("run", "anomaly").size() == 1);
    CHECK(runs.events("run", "anomaly")[0].at("unit") == "input");
  }
}

TEST_CASE("more anomalous steps than allowed end the run") {
  const Runs runs({.fault = "nans@8", .anomaly = R"("max": 2)"});
  CHECK(runs.run("run").starts_with(
      "step 10: 3 of the last 4 steps were anomalous, more than /anomaly/max; not finite: "));
}

TEST_CASE("a run without an anomaly has the bits of one without the section") {
  const Runs with({.fault = ""}), without({.fault = "", .anomaly = ""});
  REQUIRE(with.run("run") == ends(1));
  REQUIRE(without.run("run") == ends(1));
  const bool is_same = with.tensors("run", kSteps) == without.tensors("run", kSteps);
  CHECK(is_same);
  CHECK(with.events("run", "anomaly").empty());
  CHECK(without.state("run", kSteps).anomaly_window.empty());
}

TEST_CASE("where results come late the same steps are left out, for the same reason") {
  for (const char* const policy : {"skip", "reduce_lr", "rollback"}) {
    for (const char* const fault : {"nan@8,1", "spike@8,1"}) {
      CAPTURE(policy);
      CAPTURE(fault);
      Case one{.fault = fault, .anomaly = fmt::format(R"("policy": "{}")", policy), .ranks = 2};
      const Runs now(one);
      one.late = true;
      const Runs late(one);
      REQUIRE(now.run("run") == ends(2));
      REQUIRE(late.run("run") == ends(2));
      const bool is_same = now.tensors("run", kSteps) == late.tensors("run", kSteps);
      CHECK(is_same);
      REQUIRE(late.events("run", "anomaly").size() == 1);
      for (const char* const field : {"step", "rank", "keys", "kind"}) {
        CHECK(late.events("run", "anomaly")[0].at(field) ==
              now.events("run", "anomaly")[0].at(field));
      }
    }
  }
}

}  // namespace scaletrain::train::anomalies_test
