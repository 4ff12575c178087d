// Silent data corruption end to end: planted flips of one bit on one of several ranks are found at
// the next comparison, and a run that goes back ends with the bits of one without a flip.
#include "lib/train/loop/integrity.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/trainer.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train::integrity_test {
namespace {

namespace fs = std::filesystem;
using Changes = std::vector<std::string>;
using Events = std::vector<nlohmann::json>;

constexpr int kSteps = 12;  // compared every 4 steps, saved every 6

struct Case {
  int ranks = 2;
  Changes changes = {};
  std::string faults = {};                                                   // SCALETRAIN_FAULT
  std::string integrity = R"(integrity={"every": 4, "action": "restore"})";  // "": off
  bool late = false;
};

// Runs of one recipe, each in a folder of its own.
class Runs {
 public:
  // Returns what the ranks say at the end, each different text once.
  std::string run(const std::string& name, const Case& one) const {
    Changes all{fmt::format("steps={}", kSteps),
                R"(batch={"global": 8, "per_device": 2})",
                R"(optimizer={"name": "adamw", "lr": 0.01})",
                "ema={\"decay\": 0.5}",
                "validate.every={\"steps\": 6}",
                R"(checkpoint={"every": {"steps": 6}, "keep_last": 20})",
                "log.every={\"steps\": 1}",
                "output=" + folder(name).string()};
    if (!one.integrity.empty()) all.push_back(one.integrity);
    all.insert(all.end(), one.changes.begin(), one.changes.end());
    const recipe::Recipe recipe = tiny_.recipe(all);
    std::string said;
    for (const auto& rank :
         testing::run_ranks({.world_size = one.ranks}, [&](const core::WorkerEnv& given) {
           if (!one.faults.empty()) setenv("SCALETRAIN_FAULT", one.faults.c_str(), 1);
           core::WorkerEnv env = given;
           env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
           Trainer trainer(build_run(recipe, env, {}, {}), env, {}, one.late);
           const auto code = trainer.run();
           return fmt::format("code {} after step {}", static_cast<int>(code), trainer.step());
         })) {
      std::string text = rank.text;
      if (rank.status != 0) text += fmt::format(" [{}]", rank.status);
      if (said.find(text) == std::string::npos) said += (said.empty() ? "" : "; ") + text;
    }
    return said;
  }

  fs::path folder(const std::string& name) const { return tiny_.path(name); }

  // The bytes of the tensor files of a run's last checkpoint.
  std::map<std::string, std::string> tensors(const std::string& name, int step = kSteps) const {
    std::map<std::string, std::string> files;
    for (const auto& file :
         fs::directory_iterator(format::checkpoint_path(folder(name) / "checkpoints", step))) {
      if (file.path().extension() != ".safetensors") continue;
      std::ifstream stream(file.path(), std::ios::binary);
      files[file.path().filename()] = {std::istreambuf_iterator<char>(stream), {}};
    }
    return files;
  }

  format::TrainState state(const std::string& name) const {
    return format::read_state(format::checkpoint_path(folder(name) / "checkpoints", kSteps));
  }

  // The events of this kind in a file of the run.
  Events events(const std::string& name, const std::string& kind,
                const char* file = "journal.jsonl") const {
    Events result;
    std::ifstream stream(folder(name) / file);
    for (std::string line; std::getline(stream, line);) {
      nlohmann::json event = nlohmann::json::parse(line);
      if (event.at("event") == kind) result.push_back(std::move(event));
    }
    return result;
  }

 private:
  testing::TinyRun tiny_;
};

std::string end() { return fmt::format("code 0 after step {}", kSteps); }

std::string flip(int rank, int step, const std::string& where, int bit, int index = 3) {
  return fmt::format("flip-bit:rank={}@step={}:where={}:bit={}:index={}", rank, step, where, bit,
                     index);
}

struct Layout {
  std::string name;
  int ranks;
  Changes changes;
  std::vector<int> wrong;  // ranks that a majority names after a flip on rank 1
};

std::vector<Layout> layouts() {
  return {{"data parallel, 2 ranks", 2, {}, {}},
          {"data parallel, 4 ranks", 4, {}, {1}},
          {"two replicas of FSDP", 4, {R"(parallel={"shard": 2, "replica": 2})"}, {}}};
}

}  // namespace

TEST_CASE("replicas that no bit flip has hit are equal, and comparing them changes no bit") {
  for (const Layout& layout : layouts()) {
    CAPTURE(layout.name);
    const Runs runs;
    REQUIRE(runs.run("off", {.ranks = layout.ranks, .changes = layout.changes, .integrity = ""}) ==
            end());
    for (const bool late : {false, true}) {
      const std::string name = late ? "late" : "on";
      REQUIRE(runs.run(name, {.ranks = layout.ranks, .changes = layout.changes, .late = late}) ==
              end());
      const bool is_same = runs.tensors(name) == runs.tensors("off");
      CHECK(is_same);
      CHECK(runs.events(name, "replicas_differ").empty());
      std::vector<int> steps;
      for (const auto& record : runs.events(name, "comparison", "metrics.jsonl")) {
        CHECK(record.at("equal") == true);
        steps.push_back(record.at("step"));
      }
      CHECK(steps == std::vector<int>{4, 6, 8, 12});  // before each save too
    }
    CHECK(runs.events("off", "comparison", "metrics.jsonl").empty());
  }
}

TEST_CASE("a flipped bit is found within the interval, and the run ends with the clean bits") {
  struct Kind {
    std::string where;
    int bit;
  };
  for (const Layout& layout : layouts()) {
    const Runs runs;
    REQUIRE(runs.run("clean", {.ranks = layout.ranks, .changes = layout.changes}) == end());
    for (const auto& [where, bit] :
         std::vector<Kind>{{"weights", 30}, {"weights", 20}, {"moments", 29}, {"gradients", 30}}) {
      CAPTURE(layout.name);
      CAPTURE(where);
      CAPTURE(bit);
      const std::string name = fmt::format("{}{}", where, bit);
      REQUIRE(runs.run(name, {.ranks = layout.ranks,
                              .changes = layout.changes,
                              .faults = flip(1, 7, where, bit)}) == end());
      const Events found = runs.events(name, "replicas_differ");
      REQUIRE(found.size() == 1);
      CHECK(found[0].at("step") == 8);
      CHECK(found[0].at("action") == "restore");
      CHECK(found[0].at("wrong").get<std::vector<int>>() == layout.wrong);
      const Events back = runs.events(name, "went_back");
      REQUIRE(back.size() == 1);
      CHECK(back[0].at("step") == 8);
      CHECK(back[0].at("checkpoint") == 6);
      const bool is_same = runs.tensors(name) == runs.tensors("clean");
      CHECK(is_same);
      format::TrainState state = runs.state(name);
      const format::TrainState clean = runs.state("clean");
      state.trained_s = clean.trained_s;
      state.seen_s = clean.seen_s;
      CHECK(format::render_state(state) == format::render_state(clean));
    }
  }
}

TEST_CASE("a run that goes back restores each rank's BatchNorm statistics") {
  const Runs runs;
  const Changes changes{R"(model={"name": "resnet18", "num_classes": 3})", "steps=4",
                        R"(batch={"global": 4, "per_device": 2})",
                        R"(checkpoint={"every": {"steps": 2}, "keep_last": 20})"};
  for (const bool is_hit : {false, true}) {
    const std::string name = is_hit ? "hit" : "clean";
    REQUIRE(runs.run(name, {.changes = changes,
                            .faults = is_hit ? flip(1, 3, "weights", 30) : "",
                            .integrity = R"(integrity={"every": 1, "action": "restore"})"}) ==
            "code 0 after step 4");
    CHECK(runs.events(name, "went_back").size() == (is_hit ? 1 : 0));
  }
  const bool is_same = runs.tensors("hit", 4) == runs.tensors("clean", 4);
  CHECK(is_same);
}

TEST_CASE("stop ends the run with exit code 65, the tensor, its element, the values and the rank") {
  const Runs runs;
  const std::string stop = R"(integrity={"every": 4})";
  const std::string said =
      runs.run("four", {.ranks = 4, .faults = flip(2, 8, "moments", 30, 1), .integrity = stop});
  CAPTURE(said);
  const nlohmann::json event = runs.events("four", "replicas_differ").at(0);
  CHECK(event.at("tensors") == 1);  // no step was made with it
  CHECK(event.at("element") == 1);
  CHECK(event.at("ranks").get<std::vector<int>>() == std::vector<int>{0, 1, 2, 3});
  CHECK(event.at("tensor").get<std::string>().starts_with("exp_avg/"));
  CHECK(said == fmt::format("step 8: replicas differ: {}; rank 2 is wrong: the other replicas "
                            "agree; /integrity/action is stop\n  the checkpoints of the run are "
                            "verified: check the hardware of the nodes, then continue with "
                            "scaletrain resume {} [65]",
                            event.at("cause").get<std::string>(), runs.folder("four").string()));
  const std::string two = runs.run("two", {.faults = flip(1, 8, "weights", 30), .integrity = stop});
  CHECK(two.find("between two replicas no majority shows which rank is wrong") !=
        std::string::npos);
  CHECK(fs::exists(format::checkpoint_path(runs.folder("two") / "checkpoints", 6)));
}

TEST_CASE("replicas are compared at once after a loss that is not finite") {
  const Runs runs;
  // A negative second moment: the next update divides by the root of it.
  REQUIRE(runs.run("run", {.faults = flip(1, 7, "moments", 31, 983),
                           .integrity = R"(integrity={"every": 1000, "action": "restore"})"}) ==
          end());
  const Events found = runs.events("run", "replicas_differ");
  REQUIRE(found.size() == 1);
  CHECK(found[0].at("step") == 9);
}

TEST_CASE("a difference after going back, or before the first checkpoint, ends the run") {
  const Runs runs;
  const std::string twice = flip(1, 7, "weights", 25) + ";" + flip(1, 7, "weights", 25);
  CHECK(runs.run("twice", {.faults = twice})
            .find("so soon after the run has gone back to a checkpoint") != std::string::npos);
  CHECK(runs.events("twice", "replicas_differ").size() == 2);
  CHECK(runs.events("twice", "went_back").size() == 1);
  CHECK(runs.run("early", {.faults = flip(1, 2, "weights", 25)})
            .find("there is no checkpoint to go back to") != std::string::npos);
}

TEST_CASE("a wrong matrix product is named with rank, step and layer, and its steps are repeated") {
  const Runs runs;
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    const auto name = [&](const char* kind) { return fmt::format("{}{}", kind, ranks); };
    const auto integrity = [](const char* action, const char* products) {
      return fmt::format(R"(integrity={{"every": 4, "action": "{}", "products": "{}"}})", action,
                         products);
    };
    REQUIRE(runs.run(name("off"), {.ranks = ranks, .integrity = ""}) == end());
    for (const char* const products : {"sampled", "every"}) {
      REQUIRE(runs.run(name(products),
                       {.ranks = ranks, .integrity = integrity("stop", products)}) == end());
      const bool is_same = runs.tensors(name(products)) == runs.tensors(name("off"));
      CHECK(is_same);
      CHECK(runs.events(name(products), "wrong_product").empty());
    }
    const std::string fault = flip(ranks - 1, 7, "products", 30, 0);
    REQUIRE(runs.run(name("restored"), {.ranks = ranks,
                                        .faults = fault,
                                        .integrity = integrity("restore", "every")}) == end());
    const bool is_same = runs.tensors(name("restored")) == runs.tensors(name("off"));
    CHECK(is_same);
    const Events found = runs.events(name("restored"), "wrong_product");
    REQUIRE(found.size() == 1);
    CHECK(found[0].at("step") <= 8);  // sooner if the loss is not finite
    CHECK(found[0].at("cause").get<std::string>().starts_with(
        fmt::format("rank {} computed a wrong matrix product in step 7: layer ", ranks - 1)));
    CHECK(runs.run(name("stopped"),
                   {.ranks = ranks, .faults = fault, .integrity = integrity("stop", "every")})
              .ends_with("[65]"));
  }
}

TEST_CASE("where no rank has a replica the run says so and trains") {
  const Runs runs;
  for (const auto& [name, changes] :
       std::map<std::string, Changes>{{"sharded", {R"(parallel={"shard": 2})"}},
                                      {"local", {"sync=periodic", "sync.steps=3", "ema=null"}}}) {
    CAPTURE(name);
    REQUIRE(runs.run(name, {.changes = changes, .integrity = R"(integrity={"every": 4})"}) ==
            end());
    CHECK(runs.events(name, "comparison", "metrics.jsonl").empty());
    std::ifstream log(runs.folder(name) / "console.log");
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    CHECK(text.find("integrity: replicas are not compared: ") != std::string::npos);
  }
}

}  // namespace scaletrain::train::integrity_test
