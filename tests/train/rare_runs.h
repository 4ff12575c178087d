// Runs of two replicas, of one rank or several, saved behind the fourth of 8 steps and the last.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
};

inline const RareLayout kRareSingle{"one rank each", "{}", 2};

// With votes in each step, without which the metrics of DiLoCo would be of one replica.
inline const Changes kRarePeriodic{R"(sync={"name": "periodic", "steps": 2})", "clip.norm=0.5"};
inline const Changes kRareDiloco{
    R"(sync={"name": "diloco", "steps": 4, "fragments": 2, "outer": {"lr": 0.5, "momentum": 0.8}})",
    R"(early_stopping={"patience": 99})"};

// A small decoder whose embedding is tied, and one with experts.
inline const char* const kRareDecoder =
    R"(model={"name": "gpt2", "vocab_size": 50, "positions": 8, "dim": 16, "depth": 2, "heads": 2,
              "dropout": 0})";
inline const char* const kRareMixture =
    R"(model={"name": "mixtral", "vocab_size": 50, "positions": 8, "dim": 16, "depth": 2,
              "heads": 2, "kv_heads": 2, "hidden": 12, "experts": 4, "tied": true, "router_aux_loss": 0,
              "router_bias_rate": 0.01})";

class RareRuns {
 public:
  explicit RareRuns(const Changes& changes, const char* model = kRareDecoder)
      : runs_(all_changes(changes, model)) {
    std::ofstream file(runs_.path("text.bin"), std::ios::binary);  // tokens of 2 bytes
    for (int i = 0; i < 4000; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
  }

  // What rank 0 ended with, and warned of.
  std::string run(const std::string& output, const RareLayout& layout,
                  const std::optional<std::filesystem::path>& resume = {}) const {
    const std::string tokens = fmt::format(R"({{"tokens": "{}"}})", runs_.path("text.bin"));
    const recipe::Recipe asked =
        runs_.recipe(output, {"data.train=" + tokens, "data.val=" + tokens,
                              fmt::format("batch.per_device={}", 4 / layout.readers),
                              std::string("parallel=") + layout.parallel});
    return SavedRuns::run(asked, {.ranks = layout.ranks}, resume)[0].text;
  }

  RunCourse course(const std::string& output) const { return runs_.course(output); }
  std::filesystem::path cut(const std::string& output) const {
    return runs_.saved(output, kRareCut);
  }
  // Behind the last step.
  std::map<std::string, std::string> bytes(const std::string& output) const {
    return runs_.bytes(output, kRareSteps);
  }
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
                "data.train=null",
                "data.val=null",
                "data.context=8",
                "batch.global=16",
                R"(validate.every={"steps": 4})",
                R"(checkpoint={"every": {"steps": 4}, "keep_last": 9, "keep_best": 0})",
                R"(log.every={"steps": 1})"};
    all.insert(all.end(), changes.begin(), changes.end());
    return all;
  }

  SavedRuns runs_;
};

}  // namespace scaletrain::testing
