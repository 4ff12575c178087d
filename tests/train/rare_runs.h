// Runs of a few replicas, each of one rank or of several, of a small decoder whose embedding is
// tied: 8 steps, saved behind the fourth too.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/tensors.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::testing {

using Changes = std::vector<std::string>;

inline constexpr int kRareSteps = 8, kRareCut = 4;
inline constexpr const char* kRareEnd = "code 0 after step 8";

struct RareLayout {
  const char* name;
  const char* parallel;
  int ranks = 4;
  int shards = 1;
  int replicas = 2;
};

inline const RareLayout kRareSingle{"one rank each", "{}", 2};

inline const std::vector<RareLayout>& rare_layouts() {
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

// How ranks are started; on two nodes diloco exchanges by collectives.
struct RareStart {
  std::optional<std::filesystem::path> resume = {};
  int nodes = 1;
  std::function<void(int rank)> before = [](int) {};
};

struct RareCourse {
  std::string ended = {};  // with what rank 0 warned of
  std::vector<double> losses = {}, norms = {};
};

class RareRuns {
 public:
  // `images`: of a small residual network on them instead.
  explicit RareRuns(Changes changes, bool images = false)
      : changes_(std::move(changes)), images_(images) {
    std::ofstream file(tiny_.path("text.bin"), std::ios::binary);  // tokens of 2 bytes
    for (int i = 0; i < 4000; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
  }

  recipe::Recipe recipe(const std::string& output, const RareLayout& layout,
                        const Changes& more = {}) const {
    const std::string tokens = fmt::format(R"({{"tokens": "{}"}})", tiny_.path("text.bin"));
    const Changes decoder{
        R"(model={"name": "gpt2", "vocab_size": 50, "positions": 8, "dim": 16, "depth": 2,
                  "heads": 2, "dropout": 0})",
        "data.train=null",
        "data.train=" + tokens,
        "data.val=null",
        "data.val=" + tokens,
        "data.context=8"};
    Changes all = images_ ? Changes{R"(model={"name": "resnet18", "num_classes": 3})"} : decoder;
    const Changes both{"steps=8",
                       fmt::format(R"(batch={{"global": {}, "per_device": {}}})",
                                   8 * layout.replicas, 4 / layout.shards),
                       R"(validate.every={"steps": 4})",
                       R"(checkpoint={"every": {"steps": 4}, "keep_last": 9, "keep_best": 0})",
                       R"(log.every={"steps": 1})",
                       std::string("parallel=") + layout.parallel,
                       "output=" + tiny_.path(output)};
    for (const Changes& one : {both, changes_, more}) all.insert(all.end(), one.begin(), one.end());
    return tiny_.recipe(all);
  }

  // What each rank ended with, and what it warned of.
  std::vector<RankResult> run_all(const recipe::Recipe& asked, int ranks,
                                  const RareStart& start = {}) const {
    return run_ranks({.world_size = ranks, .limit_s = 120}, [&](const core::WorkerEnv& given) {
      core::WorkerEnv env = given;
      env.group_world_size = start.nodes;
      std::string warned;
      core::set_warning_listener([&](const std::string& line) { warned += "; " + line; });
      start.before(env.rank);
      return testing::ended(asked, start.resume, env) + warned;
    });
  }

  RareCourse run(const std::string& output, const RareLayout& layout,
                 const std::optional<std::filesystem::path>& resume = {}) const {
    const recipe::Recipe asked = recipe(output, layout);
    RareCourse ran{.ended = run_all(asked, layout.ranks, {.resume = resume})[0].text};
    std::ifstream stream(asked.output + "/metrics.jsonl");
    for (std::string line; std::getline(stream, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.at("event") != "train") continue;
      ran.losses.push_back(json.at("loss"));
      ran.norms.push_back(json.at("grad_norm"));
    }
    return ran;
  }

  std::filesystem::path saved(const std::string& output, int step) const {
    return format::checkpoint_path(std::filesystem::path(tiny_.path(output)) / "checkpoints", step);
  }

  // Of the files of tensors, by name.
  std::map<std::string, std::string> bytes(const std::string& output, int step = kRareSteps) const {
    std::map<std::string, std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(saved(output, step))) {
      if (file.path().extension() != ".safetensors") continue;
      std::ifstream stream(file.path(), std::ios::binary);
      files[file.path().filename()] = std::string(std::istreambuf_iterator<char>(stream), {});
    }
    return files;
  }

  nlohmann::json state(const std::string& output, int step) const {
    std::ifstream file(saved(output, step) / "state.json");
    return nlohmann::json::parse(file);
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
  TinyRun tiny_;
  Changes changes_;
  bool images_;
};

// "" where both have the same tensors, to `most` of each one's largest value.
inline std::string tensors_apart(const checkpoint::Tensors& found,
                                 const checkpoint::Tensors& expected, double most) {
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

}  // namespace scaletrain::testing
