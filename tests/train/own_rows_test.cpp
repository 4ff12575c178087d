// Replicas of several ranks that train alone and exchange weights now and then, against replicas of
// one rank each: layout x sync, a line each; and what each of them has of its own in a checkpoint.
#include "lib/train/own_rows.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/checkpoint/tensors.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using Changes = std::vector<std::string>;

constexpr int kRareSteps = 8, kRareCut = 4;
constexpr double kRareMost = 1e-5;
constexpr const char* kRareEnd = "code 0 after step 8";

// Two replicas.
struct RareLayout {
  const char* name;
  const char* parallel;
  int ranks = 4;
  int shards = 1;
};

const RareLayout kRareSingle{"one rank each", "{}", 2};

const std::vector<RareLayout>& rare_layouts() {
  static const std::vector<RareLayout> all{
      {"shard, optimizer", R"({"shard": 2, "shard_level": "optimizer"})", 4, 2},
      {"shard, gradients", R"({"shard": 2, "shard_level": "gradients"})", 4, 2},
      {"shard, parameters", R"({"shard": 2})", 4, 2},
      {"tensor", R"({"tensor": 2})"},
      {"sequence", R"({"tensor": 2, "sequence": true})"},
      {"pipeline", R"({"pipeline": 2})"},
      {"pipeline, zero_bubble", R"({"pipeline": 2, "schedule": "zero_bubble"})"},
      {"shard x tensor", R"({"shard": 2, "tensor": 2, "shard_level": "gradients"})", 8, 2},
      {"shard x context", R"({"shard": 2, "context": 2})", 8, 2},
      {"shard x pipeline", R"({"shard": 2, "pipeline": 2, "schedule": "zero_bubble"})", 8, 2},
      {"tensor x pipeline", R"({"tensor": 2, "pipeline": 2})", 8},
  };
  return all;
}

const std::vector<Changes>& rare_syncs() {
  // With votes in each step, without which the metrics of DiLoCo would be of one replica.
  static const std::vector<Changes> all{
      {R"(sync={"name": "periodic", "steps": 2})", "clip.norm=0.5"},
      {R"(sync={"name": "diloco", "steps": 4, "fragments": 2,
                "outer": {"lr": 0.5, "momentum": 0.8}})",
       R"(early_stopping={"patience": 99})"},
  };
  return all;
}

// A run of a small decoder whose embedding is tied, saved behind the fourth step.
struct RareCourse {
  std::string ended = {};  // with what rank 0 warned of
  std::vector<double> losses = {}, norms = {};
};

class RareRuns {
 public:
  explicit RareRuns(Changes changes) : changes_(std::move(changes)) {
    std::ofstream file(tiny_.path("text.bin"), std::ios::binary);  // tokens of 2 bytes
    for (int i = 0; i < 4000; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
  }

  recipe::Recipe recipe(const std::string& output, const RareLayout& layout) const {
    const std::string tokens = fmt::format(R"({{"tokens": "{}"}})", tiny_.path("text.bin"));
    Changes all{"steps=8",
                R"(model={"name": "gpt2", "vocab_size": 50, "positions": 8, "dim": 16, "depth": 2,
                          "heads": 2, "dropout": 0})",
                "data.train=null",
                "data.train=" + tokens,
                "data.val=null",
                "data.val=" + tokens,
                "data.context=8",
                fmt::format(R"(batch={{"global": 16, "per_device": {}}})", 4 / layout.shards),
                R"(validate.every={"steps": 4})",
                R"(checkpoint={"every": {"steps": 4}, "keep_last": 9, "keep_best": 0})",
                R"(log.every={"steps": 1})",
                std::string("parallel=") + layout.parallel,
                "output=" + tiny_.path(output)};
    all.insert(all.end(), changes_.begin(), changes_.end());
    return tiny_.recipe(all);
  }

  RareCourse run(const std::string& output, const RareLayout& layout,
                 const std::optional<fs::path>& resume = {}) const {
    const recipe::Recipe asked = recipe(output, layout);
    RareCourse ran{
        .ended = testing::run_ranks({.world_size = layout.ranks, .limit_s = 120},
                                    [&](const core::WorkerEnv& env) {
                                      std::string warned;
                                      core::set_warning_listener(
                                          [&](const std::string& line) { warned += "; " + line; });
                                      return testing::ended(asked, resume, env) + warned;
                                    })[0]
                     .text};
    std::ifstream stream(asked.output + "/metrics.jsonl");
    for (std::string line; std::getline(stream, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.at("event") != "train") continue;
      ran.losses.push_back(json.at("loss"));
      ran.norms.push_back(json.at("grad_norm"));
    }
    return ran;
  }

  fs::path saved(const std::string& output, int step) const {
    return format::checkpoint_path(fs::path(tiny_.path(output)) / "checkpoints", step);
  }

  std::map<std::string, std::string> bytes(const std::string& output) const {
    std::map<std::string, std::string> files;
    for (const auto& file : fs::directory_iterator(saved(output, kRareSteps))) {
      if (file.path().extension() != ".safetensors") continue;
      std::ifstream stream(file.path(), std::ios::binary);
      files[file.path().filename()] = std::string(std::istreambuf_iterator<char>(stream), {});
    }
    return files;
  }

  // Whole tensors of a file, however it was written.
  checkpoint::Tensors tensors(const std::string& output, const char* file) const {
    const format::StoredTensors stored(saved(output, kRareSteps) / file);
    checkpoint::Tensors result;
    for (const format::TensorInfo& info : stored.tensors()) {
      const at::Tensor tensor = at::empty(info.shape, *checkpoint::type_of(info.dtype));
      stored.read(info, checkpoint::bytes_of(tensor));
      result.emplace(info.name, tensor);
    }
    return result;
  }

 private:
  testing::TinyRun tiny_;
  Changes changes_;
};

// "" where both have the same tensors, to `most` of each one's largest value.
std::string tensors_apart(const checkpoint::Tensors& found, const checkpoint::Tensors& expected,
                          double most) {
  std::string text;
  if (found.size() != expected.size()) text = "another number of tensors; ";
  for (const auto& [name, tensor] : expected) {
    const auto one = found.find(name);
    if (one == found.end() || one->second.sizes() != tensor.sizes()) {
      text += name + " is missing, or of another shape; ";
      continue;
    }
    const double off =
        (one->second.to(at::kDouble) - tensor.to(at::kDouble)).abs().max().item<double>();
    const double scale = std::max(tensor.abs().max().to(at::kDouble).item<double>(), 1e-3);
    if (!(off <= most * scale)) text += fmt::format("{} is off by {:.1e}; ", name, off / scale);
  }
  return text;
}

double largest_apart(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.empty()) return 1;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] / b[i] - 1));
  return largest;
}

}  // namespace

TEST_CASE("replicas of several ranks train, and go on, as replicas of one rank") {
  for (const Changes& sync : rare_syncs()) {
    CAPTURE(sync.front());
    const RareRuns runs(sync);
    const RareCourse expected = runs.run("single", kRareSingle);
    REQUIRE(expected.ended == kRareEnd);
    for (const RareLayout& layout : rare_layouts()) {
      CAPTURE(std::string(layout.name));
      const RareCourse found = runs.run(layout.name, layout);
      REQUIRE(found.ended == kRareEnd);
      CHECK(largest_apart(found.losses, expected.losses) < kRareMost);
      CHECK(largest_apart(found.norms, expected.norms) < kRareMost);
      for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
        CHECK(tensors_apart(runs.tensors(layout.name, file), runs.tensors("single", file),
                            kRareMost) == "");
      }
      const std::string second = std::string(layout.name) + ", second";
      REQUIRE(runs.run(second, layout, runs.saved(layout.name, kRareCut)).ended == kRareEnd);
      const bool is_same = runs.bytes(second) == runs.bytes(layout.name);
      CHECK(is_same);
    }
    CHECK(tensors_apart(runs.tensors("shard, gradients", "model.safetensors"),
                        runs.tensors("shard, parameters", "model.safetensors"), 0) == "");
  }
}

TEST_CASE("each level of shard has the same bits in replicas that train alone") {
  Changes changes = rare_syncs().back();
  changes.emplace_back(R"(batch={"global": 8, "per_device": 2})");  // no sums of micro-batches
  const RareRuns runs(changes);
  for (const char* const level : {"optimizer", "gradients", "parameters"}) {
    const std::string parallel = fmt::format(R"({{"shard": 2, "shard_level": "{}"}})", level);
    REQUIRE(runs.run(level, {level, parallel.c_str(), 4, 2}).ended == kRareEnd);
    for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
      CHECK(tensors_apart(runs.tensors(level, file), runs.tensors("optimizer", file), 0) == "");
    }
  }
}

TEST_CASE("replicas keep their own state on ranks that hold the model in another way") {
  const RareRuns runs(rare_syncs().back());
  const RareLayout cut{"cut", R"({"shard": 2, "tensor": 2})", 8, 2};
  REQUIRE(runs.run("single", kRareSingle).ended == kRareEnd);
  REQUIRE(runs.run("cut", cut).ended == kRareEnd);
  const auto goes_on = [&](const char* from, const RareLayout& layout) {
    const std::string output = fmt::format("{} on {}", from, layout.name);
    const std::string ended = runs.run(output, layout, runs.saved(from, kRareCut)).ended;
    CHECK(ended.starts_with(kRareEnd));
    CHECK(ended.find("state of the optimizer") == std::string::npos);
    for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
      CHECK(tensors_apart(runs.tensors(output, file), runs.tensors("single", file), kRareMost) ==
            "");
    }
  };
  goes_on("single", cut);
  goes_on("single", {"stages", R"({"pipeline": 2})"});
  goes_on("cut", kRareSingle);
  goes_on("cut", {"stages", R"({"pipeline": 2, "shard": 2})", 8, 2});
  CHECK(runs.run("more", {"more", R"({"shard": 2})", 8, 2}, runs.saved("cut", kRareCut))
            .ended.find("each replica goes on with the first one's state of the optimizer: the "
                        "checkpoint is of another mesh") != std::string::npos);
}

TEST_CASE("the owner of a whole tensor keeps its replica's state of it") {
  Changes changes = rare_syncs().back();
  changes.emplace_back(R"(optimizer={"name": "lars", "lr": 0.1})");
  const RareRuns runs(changes);
  const RareLayout shard{"shard", R"({"shard": 2})", 4, 2};
  REQUIRE(runs.run("single", kRareSingle).ended == kRareEnd);
  REQUIRE(runs.run("shard", shard).ended == kRareEnd);
  for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
    CHECK(tensors_apart(runs.tensors("shard", file), runs.tensors("single", file), kRareMost) ==
          "");
  }
  REQUIRE(runs.run("second", shard, runs.saved("shard", kRareCut)).ended == kRareEnd);
  const bool is_same = runs.bytes("second") == runs.bytes("shard");
  CHECK(is_same);
}

TEST_CASE("ranks that hold a model together compress what replicas exchange") {
  // Sums of fp32 differ in their last bits, and then a rounding may fall the other way. What two
  // stages share, and what context ranks add up, is rounded on each of them.
  constexpr double kOtherRoundings = 1e-2;
  const RareRuns plain({"clip.norm=0.5"});
  REQUIRE(plain.run("single", kRareSingle).ended == kRareEnd);
  for (const char* const name : {"bf16", "fp16"}) {
    CAPTURE(std::string(name));
    const RareRuns runs({std::string("compress=") + name, "clip.norm=0.5"});
    REQUIRE(runs.run("single", kRareSingle).ended == kRareEnd);
    const checkpoint::Tensors expected = runs.tensors("single", "model.safetensors");
    const double one_rounding = name == std::string("bf16") ? 2e-3 : 3e-4;
    for (const RareLayout& layout : rare_layouts()) {
      const std::string where = layout.name;
      CAPTURE(where);
      REQUIRE(runs.run(where, layout).ended == kRareEnd);
      const checkpoint::Tensors found = runs.tensors(where, "model.safetensors");
      const bool rounds_alike =
          where.find("pipeline") == std::string::npos && where.find("context") == std::string::npos;
      CHECK(tensors_apart(found, expected, rounds_alike ? one_rounding : kOtherRoundings) == "");
      CHECK(tensors_apart(found, plain.tensors("single", "model.safetensors"), 1e-6) != "");
    }
  }
}

TEST_CASE("what ranks that hold a model together have not sent goes on with them") {
  const RareRuns plain({});
  const std::vector<double> expected = plain.run("single", kRareSingle).losses;
  for (const char* const name : {"int8", "onebit"}) {
    CAPTURE(std::string(name));
    const RareRuns runs({std::string("compress=") + name});
    for (const RareLayout& layout : rare_layouts()) {
      if (!std::string(layout.name).starts_with("shard") ||
          std::string(layout.name).find("tensor") != std::string::npos ||
          std::string(layout.name).find("pipeline") != std::string::npos) {
        continue;
      }
      CAPTURE(std::string(layout.name));
      const RareCourse found = runs.run(layout.name, layout);
      REQUIRE(found.ended == kRareEnd);
      CHECK(largest_apart(found.losses, expected) < 0.05);
      if (name == std::string("int8") && layout.name == std::string("shard, parameters")) {
        REQUIRE(plain.run("plain", layout).ended == kRareEnd);
        const std::string ended =
            runs.run("from plain", layout, plain.saved("plain", kRareCut)).ended;
        CHECK(ended.find("kept for the next step is zero: ") != std::string::npos);
      }
      const std::string second = std::string(layout.name) + ", second";
      REQUIRE(runs.run(second, layout, runs.saved(layout.name, kRareCut)).ended == kRareEnd);
      CHECK_FALSE(runs.tensors(second, "ranks.safetensors").empty());
      const bool is_same = runs.bytes(second) == runs.bytes(layout.name);
      CHECK(is_same);
    }
    const RareLayout stages{"other", R"({"shard": 4})", 4, 4};
    CHECK(runs.run("other", stages, runs.saved("shard, parameters", kRareCut))
              .ended.starts_with(kRareEnd));
  }
}

}  // namespace scaletrain::train
