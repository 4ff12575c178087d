// Runs of a few replicas, of one rank or several, saved behind the fourth of 8 steps and the last.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/long_form.h"
#include "tests/train/saved_runs_support.h"

namespace scaletrain::testing {

using Changes = std::vector<std::string>;

constexpr int kRareSteps = 8, kRareCut = 4;
constexpr double kRareMost = 1e-5;
constexpr const char* kRareEnd = "code 0 after step 8";

struct RareLayout {
  const char* name;
  const char* parallel;
  int ranks = 4;
  int readers = 1;  // of a replica: ranks that train on other samples
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

// The same whose replicas share the experts of a mixture, the first of two ranks.
inline const std::vector<RareLayout>& rare_expert_layouts() {
  static const std::vector<RareLayout> all{
      {"expert", R"({"expert": 2})", 4, 2},
      {"shard 2 of expert 2", R"({"expert": 2, "shard": 2, "shard_level": "gradients"})", 4, 2},
      {"shard 2 of expert 4", R"({"expert": 4, "shard": 2})", 8, 4},
      {"expert x tensor", R"({"expert": 2, "tensor": 2})", 8, 2},
      {"expert x context", R"({"expert": 2, "context": 2})", 8, 2},
      {"expert x pipeline", R"({"expert": 2, "pipeline": 2, "schedule": "zero_bubble"})", 8, 2},
  };
  return all;
}

// Returns those of `layouts` that have one of `names`, in the long form all. Throws
// std::logic_error for a name that none has.
inline std::vector<RareLayout> layouts_named(const std::vector<RareLayout>& layouts,
                                             const std::set<std::string>& names) {
  if (is_long_form()) return layouts;
  std::vector<RareLayout> result;
  for (const RareLayout& layout : layouts) {
    if (names.contains(layout.name)) result.push_back(layout);
  }
  if (result.size() != names.size()) throw std::logic_error("a layout's name is misspelled");
  return result;
}

// With votes in each step, without which the metrics of DiLoCo would be of one replica.
inline const Changes kRarePeriodic{R"(sync={"name": "periodic", "steps": 2})", "clip.norm=0.5"};
inline const Changes kRareDiloco{
    R"(sync={"name": "diloco", "steps": 4, "fragments": 2, "outer": {"lr": 0.5, "momentum": 0.8}})",
    R"(early_stopping={"patience": 99})"};

// A small decoder whose embedding is tied, one with experts, and a network with BatchNorm on
// images.
inline const char* const kRareDecoder =
    R"(model={"name": "gpt2", "vocab_size": 50, "positions": 8, "dim": 16, "depth": 2, "heads": 2,
              "dropout": 0})";
inline const char* const kRareMixture =
    R"(model={"name": "mixtral", "vocab_size": 50, "positions": 8, "dim": 16, "depth": 2,
              "heads": 2, "kv_heads": 2, "hidden": 12, "experts": 4, "tied": true, "router_aux_loss": 0,
              "router_bias_rate": 0.01})";

inline const char* const kRareImages = R"(model={"name": "mobilenet_v3_small", "num_classes": 3})";

class RareRuns {
 public:
  explicit RareRuns(const Changes& changes, const char* model = kRareDecoder)
      : runs_(all_changes(changes, model)), reads_text_(model != kRareImages) {
    for (const auto& [name, tokens] : {std::pair("text.bin", 4000), std::pair("val.bin", 130)}) {
      std::ofstream file(runs_.path(name), std::ios::binary);  // tokens of 2 bytes
      for (int i = 0; i < tokens; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
    }
  }

  recipe::Recipe recipe(const std::string& output, const RareLayout& layout,
                        const Changes& more = {}) const {
    Changes all{fmt::format("batch.per_device={}", 4 / layout.readers),
                std::string("parallel=") + layout.parallel};
    if (layout.replicas != 2) all.push_back(fmt::format("batch.global={}", 8 * layout.replicas));
    if (reads_text_) {
      const auto tokens = [&](const char* set, const char* file) {
        return fmt::format(R"({}={{"tokens": "{}"}})", set, runs_.path(file));
      };
      all.insert(all.end(), {tokens("data.train", "text.bin"), tokens("data.val", "val.bin")});
    }
    all.insert(all.end(), more.begin(), more.end());
    return runs_.recipe(output, all);
  }

  // What rank 0 ended with, and warned of.
  std::string run(const std::string& output, const RareLayout& layout,
                  const std::optional<std::filesystem::path>& resume = {}) const {
    return SavedRuns::run(recipe(output, layout), {.ranks = layout.ranks}, resume)[0].text;
  }

  RunCourse course(const std::string& output) const { return runs_.course(output); }
  std::filesystem::path saved(const std::string& output, int step) const {
    return runs_.saved(output, step);
  }
  std::filesystem::path cut(const std::string& output) const { return saved(output, kRareCut); }
  nlohmann::json state(const std::string& output, int step) const {
    return runs_.state(output, step);
  }
  std::map<std::string, std::string> bytes(const std::string& output, int step = kRareSteps) const {
    return runs_.bytes(output, step);
  }
  // Behind the last step.
  checkpoint::Tensors tensors(const std::string& output, const char* file) const {
    return runs_.tensors(output, kRareSteps, file);
  }
  // "" where two runs have learned the same, and their optimizers too, to `most`.
  std::string apart(const std::string& found, const std::string& expected,
                    double most = kRareMost) const {
    std::string text;
    for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
      text += tensors_apart(tensors(found, file), tensors(expected, file), most);
    }
    return text;
  }

  // "" where `layout` goes on from the cut of run `from`, each replica with its own state of the
  // optimizer, to what `expected` ended with.
  std::string goes_on_as(const std::string& expected, const std::string& from,
                         const RareLayout& layout) const {
    const std::string output = fmt::format("{} on {}", from, layout.name);
    const std::string ended = run(output, layout, cut(from));
    if (!ended.starts_with(kRareEnd) || ended.find("state of the optimizer") != std::string::npos) {
      return ended;
    }
    return apart(output, expected);
  }

  // "" where it trains within kRareMost of `expected`, and a resume ends with its own bits.
  std::string trains_and_goes_on_as(const std::string& expected, const RareLayout& layout) const {
    const std::string name = layout.name, second = name + ", second";
    std::string text = run(name, layout);
    if (text != kRareEnd) return text;
    text = apart(name, expected);
    const RunCourse found = course(name), wanted = course(expected);
    if (largest_apart(found.losses, wanted.losses) > kRareMost) text += "other losses; ";
    if (largest_apart(found.norms, wanted.norms) > kRareMost) text += "other norms; ";
    const std::string ended = run(second, layout, cut(name));
    if (ended != kRareEnd) return text + ended;
    return bytes(second) == bytes(name) ? text : text + "other bits of a resume";
  }

 private:
  static Changes all_changes(const Changes& changes, const char* model) {
    Changes all{"steps=8",
                model,
                "batch.global=16",
                R"(validate.every={"steps": 4})",
                R"(checkpoint={"every": {"steps": 4}, "keep_last": 9, "keep_best": 0})",
                R"(log.every={"steps": 1})"};
    if (model != kRareImages) {
      all.insert(all.end(), {"data.train=null", "data.val=null", "data.context=8"});
    }
    all.insert(all.end(), changes.begin(), changes.end());
    return all;
  }

  SavedRuns runs_;
  bool reads_text_;
};

}  // namespace scaletrain::testing
