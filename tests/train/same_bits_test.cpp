// Two promises for every optimizer, every schedule and each option of training: a run that goes on
// from a checkpoint ends with the bits of the one that was not cut, and two ranks train on the
// samples of one in its order. A row that is added to lib/recipe/catalog/optimizers.def or
// schedules.def is tested by being there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/catalog/lists.h"
#include "tests/dist/ranks.h"
#include "tests/long_form.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train::same_bits_test {
namespace {

namespace fs = std::filesystem;
using Changes = std::vector<std::string>;

constexpr int kSteps = 6, kCut = 3;

struct Case {
  std::string name;
  Changes changes;
  bool text = false;       // a language model's
  bool on_2_ranks = true;  // two ranks train it too
};

const char* const kConvolutional =
    R"(model={"name": "mobilenet_v3_small", "num_classes": 3, "norm": "group"})";

std::string mixtral(const std::string& options) {
  return R"(model={"name": "mixtral", "vocab_size": 50, "positions": 16, "dim": 16, "depth": 2,
                   "heads": 4, "hidden": 24, )" +
         options + "}";
}

const char* const kGrowing =
    R"(batch={"global": 12, "per_device": 2,
              "ramp": {"start": 4, "increment": 4, "samples": 20}})";

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  // Each rank has the sums of gradients before an optimizer or a schedule takes part.
  const bool on_2_ranks = testing::is_long_form();
  for (const recipe::Row& row : recipe::optimizers().rows) {
    const std::string change =
        fmt::format(R"(optimizer={{"name": "{}", "lr": 0.01, "weight_decay": 0.1}})", row.name);
    cases.push_back({row.name, {change}, /*text=*/false, on_2_ranks});
  }
  for (const recipe::Row& row : recipe::schedules().rows) {
    const bool has_list = std::any_of(row.options.begin(), row.options.end(),
                                      [](const recipe::Option& one) { return one.is_list(); });
    const std::string change = fmt::format(R"(schedule.decay={{"name": "{}"{}}})", row.name,
                                           has_list ? R"(, "milestones": [0.4])" : "");
    cases.push_back({row.name, {change}, /*text=*/false, on_2_ranks});
  }
  const std::vector<Case> options{
      {"8-bit states", {R"(optimizer={"name": "adamw_8bit", "lr": 0.01, "min_8bit_size": 0})"}},
      {"new bases", {R"(optimizer={"name": "soap", "lr": 0.01, "frequency": 2})"}},
      {"warmup and cooldown", {R"(schedule={"warmup": {"steps": 2}, "cooldown": {"steps": 2}})"}},
      {"plateau", {R"(schedule={"plateau": {"patience": 0, "threshold": 0.9}})"}},
      {"schedule by epochs", {R"(schedule={"decay": "cosine", "by": "epoch"})"}},
      {"weight_decay_end", {"optimizer.weight_decay=0.1", "optimizer.weight_decay_end=0.5"}},
      {"groups", {R"(optimizer.groups=[{"match": "head.*", "lr_scale": 2, "weight_decay": 0.2}])"}},
      {"layer_decay", {"optimizer.layer_decay=0.5"}},
      {"centralize_gradients", {"optimizer.centralize_gradients=true"}},
      {"clip.norm", {"clip={\"norm\": 0.1}"}},
      {"clip.value", {"clip={\"value\": 0.01}"}},
      {"clip.adaptive", {"clip={\"adaptive\": 0.01}"}},
      {"sam", {"sam={}"}},
      {"adaptive sam", {"sam={\"adaptive\": true}"}},
      {"ema", {"ema={\"decay\": 0.5}"}},
      {"ema with a warmup", {R"(ema={"decay": 0.9, "warmup": true, "every": 2})"}},
      {"several ema", {"ema={\"decay\": [0.5, 0.9]}"}},
      {"swa", {R"(swa={"start": {"steps": 2}, "every": {"steps": 1}, "lr": 0.2})"}},
      {"dropout", {"model.dropout=0.5"}},
      {"label_smoothing", {"loss.label_smoothing=0.1"}},
      {"mixup and cutmix", {"mix={\"mixup\": 0.2, \"cutmix\": 1}"}},
      {"augment", {R"(data.train.augment=["random_crop", "rand_augment", "random_erasing"])"}},
      {"repeats", {"data.train.repeats=2"}},
      {"balanced", {"data.train.balanced=true"}},
      {"streamed", {"data.order=streamed", "data.lanes=4", "data.samples_per_epoch=24"}},
      {"bf16", {"precision=bf16"}},
      {"recompute", {"recompute=all"}},
      {"resize_ramp",
       {kConvolutional, "data.image_size=16",
        R"(data.resize_ramp={"from": 8, "over": {"steps": 5}, "multiple_of": 2})"}},
      {"batch.ramp", {kGrowing}},  // 4, 4, 4 and 8 samples of an epoch, then 12
      {"batch.ramp over epochs",
       {kGrowing, "steps=null", "epochs=2",
        R"(schedule={"warmup": {"epochs": 0.5}, "decay": "cosine"})"}},
      {"batch.ramp and repeats", {kGrowing, "data.train.repeats=3"}},
      {"batch.ramp, streamed",
       {kGrowing, "data.order=streamed", "data.lanes=4", "data.samples_per_epoch=26"}},
      {"batch.ramp and resize_ramp",
       {kConvolutional, kGrowing, "data.image_size=16",
        R"(data.resize_ramp={"from": 8, "over": {"steps": 3}, "multiple_of": 2})"}},
      {"batch.ramp, sam and ema", {kGrowing, "sam={}", "ema={\"decay\": 0.5}"}},
      {"experts balanced by a loss", {mixtral(R"("router_aux_loss": 0.5)")}, true},
      {"experts balanced by a bias, with a capacity",
       {mixtral(R"("router_bias_rate": 0.1, "capacity_factor": 1.25)")},
       true},
      {"experts with sam, recompute and chunks",
       {mixtral(R"("router_bias_rate": 0.1)"), "sam={}", "recompute=all", "loss.chunk=24"},
       true},
      {"experts without tokens", {mixtral(R"("experts": 48, "experts_per_token": 1)")}, true},
      {"one expert a token", {mixtral(R"("experts_per_token": 1)"), "ema={\"decay\": 0.5}"}, true},
  };
  cases.insert(cases.end(), options.begin(), options.end());
  return cases;
}

struct Ran {
  std::string ended;
  std::map<int, std::string> digests;  // of the order, by step
  std::map<int, double> losses;
  std::map<std::string, std::string> tensors;  // files of the last checkpoint
};

fs::path saved_in(const recipe::Recipe& recipe, int step) {
  return format::checkpoint_path(fs::path(recipe.output) / "checkpoints", step);
}

Ran look_at(const recipe::Recipe& recipe, std::string ended) {
  Ran ran{.ended = std::move(ended), .digests = {}, .losses = {}, .tensors = {}};
  std::ifstream stream(recipe.output + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") != "train") continue;
    ran.digests[json.at("step")] = json.at("order_digest");
    ran.losses[json.at("step")] = json.at("loss");
  }
  std::error_code none;
  for (const auto& file : fs::directory_iterator(saved_in(recipe, kSteps), none)) {
    if (file.path().extension() != ".safetensors") continue;
    std::ifstream bytes(file.path(), std::ios::binary);
    ran.tensors[file.path().filename()] = std::string(std::istreambuf_iterator<char>(bytes), {});
  }
  return ran;
}

class Runs {
 public:
  explicit Runs(const Case& one) : case_(one) {
    for (const auto& [name, tokens] : {std::pair("train.bin", 2000), std::pair("val.bin", 140)}) {
      std::ofstream file(tiny_.path(name), std::ios::binary);  // tokens of 2 bytes
      for (int i = 0; i < tokens; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
    }
  }

  recipe::Recipe recipe(const std::string& output) const {
    Changes all{"steps=6",
                "model.layers=3",
                R"(batch={"global": 4, "per_device": 2})",
                "validate.every={\"steps\": 2}",
                "checkpoint.every={\"steps\": 3}",
                "log.every={\"steps\": 1}",
                "output=" + tiny_.path(output)};
    const Changes& own = case_.changes;
    if (case_.text || std::find(own.begin(), own.end(), kConvolutional) != own.end()) {
      all.erase(all.begin() + 1);
    }
    if (case_.text) {
      const auto tokens = [&](const char* set, const char* file) {
        return fmt::format(R"({}={{"tokens": "{}"}})", set, tiny_.path(file));
      };
      all.insert(all.end(), {"data.train=null", tokens("data.train", "train.bin"), "data.val=null",
                             tokens("data.val", "val.bin"), "data.context=16"});
    }
    all.insert(all.end(), own.begin(), own.end());
    return tiny_.recipe(all);
  }

  Ran run(const std::string& output, int ranks, const std::optional<fs::path>& resume = {}) const {
    const recipe::Recipe asked = recipe(output);
    std::string said;
    for (const auto& rank :
         testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
           return testing::ended(asked, resume, ranks == 1 ? core::WorkerEnv{} : env);
         })) {
      said = rank.text;
    }
    return look_at(asked, said);
  }

 private:
  testing::TinyRun tiny_;
  Case case_;
};

}  // namespace

TEST_CASE(
    "a run that goes on ends with the bits of the one that was not cut, and two ranks follow one") {
  for (const Case& one : all_cases()) {
    CAPTURE(one.name);
    const Runs runs(one);
    const Ran whole = runs.run("whole", 1);
    REQUIRE(whole.ended == "code 0 after step 6");
    const Ran second = runs.run("second", 1, saved_in(runs.recipe("whole"), kCut));
    REQUIRE(second.ended == "code 0 after step 6");
    REQUIRE(whole.tensors.contains("model.safetensors"));
    REQUIRE(whole.tensors.size() == second.tensors.size());
    for (const auto& [file, bytes] : whole.tensors) {
      CAPTURE(file);
      const bool is_same = second.tensors.at(file) == bytes;
      CHECK(is_same);
    }
    for (int step = kCut + 1; step <= kSteps; ++step) {
      CHECK(whole.losses.at(step) == second.losses.at(step));
      CHECK(whole.digests.at(step) == second.digests.at(step));
    }
    REQUIRE(whole.digests.size() == kSteps);
    if (!one.on_2_ranks) continue;
    const Ran both = runs.run("both", 2);
    REQUIRE(both.ended == "code 0 after step 6");
    CHECK(whole.digests == both.digests);
    for (const auto& [step, loss] : whole.losses) {
      CHECK(both.losses.at(step) == doctest::Approx(loss).epsilon(one.text ? 1e-5 : 1e-3));
    }
  }
}

}  // namespace scaletrain::train::same_bits_test
