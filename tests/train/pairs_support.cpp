#include "tests/train/pairs_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/rgb8.h"
#include "lib/recipe/load.h"
#include "tests/format/tar/tar_support.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWidth = 14, kHeight = 12;

std::string picture(int number) {
  std::string pixels;
  for (std::int64_t y = 0; y < kHeight; ++y) {
    for (std::int64_t x = 0; x < kWidth; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        pixels += static_cast<char>((x * x * 7 + y * (13 + c) + number * 29 + c * 50) % 256);
      }
    }
  }
  return format::rgb8_header({kWidth, kHeight}) + pixels;
}

std::string pictures(int first, int count) {
  std::string tar;
  for (int i = first; i < first + count; ++i) {
    tar += format::tar_member(fmt::format("{:03}.rgb8", i), picture(i)) +
           format::tar_member(fmt::format("{:03}.cls", i), std::to_string(i % 3));
  }
  return tar + format::tar_end();
}

std::string tokens(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += static_cast<char>((i * i + i / 7) % 50);
    bytes += '\0';
  }
  return bytes;
}

// Of the run, not of the machine: nor when checkpoints were written.
std::string lines_of(const fs::path& run) {
  std::ifstream stream(run / "metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(stream, line);) {
    auto json = nlohmann::json::parse(line);
    if (json.at("event") == "checkpoint" || json.at("event") == "ledger") continue;
    for (const char* const measured :
         {"samples_per_s", "data_time", "compute_time", "read_time", "decode_time", "augment_time",
          "memory_bytes", "time", "format", "step_flops", "tflops_per_s"}) {
      json.erase(measured);
    }
    text += json.dump() + "\n";
  }
  return text;
}

std::string checkpoints_of(const fs::path& run) {
  std::string text;
  for (const std::int64_t step : format::list_checkpoints(run / "checkpoints")) {
    const fs::path path = format::checkpoint_path(run / "checkpoints", step);
    const format::TrainState state = format::read_state(path);
    text += fmt::format("{} {} best {} of step {} by {}\n", step, format::model_digest(path),
                        state.best_metric, state.best_step, state.best_by);
  }
  return text;
}

}  // namespace

Pairs::Pairs() {
  folder_.write("a.tar", pictures(0, 16));
  folder_.write("b.tar", pictures(16, 8));
  folder_.write("val.tar", pictures(5, 12));
  folder_.write("train.bin", tokens(401));
  folder_.write("val.bin", tokens(101));
}

std::string Pairs::left_by(const Changes& changes, bool tokens) {
  const auto [known, is_new] = known_[tokens ? 1 : 0].emplace(changes, "");
  if (!is_new) return known->second;
  const fs::path output = folder_.path / fmt::format("run-{}", ++runs_);
  known->second = run_in(output, changes, tokens);
  fs::remove_all(output);
  return known->second;
}

void Pairs::keep_run(const std::string& name, const Changes& changes) {
  run_in(path(name), changes, /*tokens=*/false);
}

std::string Pairs::run_in(const fs::path& output, Changes changes, bool tokens) const {
  const std::string common = R"("name": "pair", "seed": 3, "steps": 4, "threads": 1,
      "device": "cpu", "batch": {"per_device": 4}, "log": {"every": {"steps": 1}},
      "validate": {"every": {"steps": 2}}, "checkpoint": {"every": {"steps": 2}},
      "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9},)";
  const std::string own =
      tokens
          ? fmt::format(R"("model": {{"name": "gpt2", "vocab_size": 50, "positions": 8, "dim": 16,
                               "depth": 1, "heads": 2}},
                 "data": {{"train": {{"tokens": "{0}/train.bin"}}, "threads": 1,
                           "val": {{"tokens": "{0}/val.bin"}}}})",
                        folder_.path.string())
          : fmt::format(R"("model": {{"name": "mlp", "num_classes": 3, "hidden": 6, "layers": 3}},
                 "data": {{"train": {{"shards": ["{0}/a.tar", "{0}/b.tar"]}},
                           "val": {{"shards": "{0}/val.tar"}}, "image_size": 8, "threads": 1}})",
                        folder_.path.string());
  changes.push_back("output=" + output.string());
  try {
    const recipe::Recipe recipe =
        recipe::parse_recipe(fmt::format("{{{}{}}}", common, own), "pair.json", changes);
    const std::string said = said_apart([&] { return ended(recipe); });
    if (!said.starts_with("code 0")) return said;
    return fmt::format("{}\n{}{}", said, lines_of(output), checkpoints_of(output));
  } catch (const core::Error& error) {
    return fmt::format("error: {}", error.what());
  }
}

}  // namespace scaletrain::testing
