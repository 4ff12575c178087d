// What every option that saves memory keeps: the order of the samples, the bits of a run without
// it, and those of a run that was cut. A new option is a new row.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lib/core/process/signals.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/load.h"
#include "lib/train/loop/trainer.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace paths = std::filesystem;

struct MemoryOption {
  const char* name;
  std::vector<std::string> changes;
  bool same_bits = true;  // as without it
  bool text = false;      // of a language model
};

const std::vector<MemoryOption> kOptions{
    {"recompute", {"recompute=all"}},
    {"recompute some", {"recompute.every=2"}},
    {"recompute to a budget", {"recompute.budget_mb=2"}},
    {"activations on the host", {"offload.activations=true"}},
    {"the optimizer on the host", {"offload.optimizer=true", "clip.norm=0.5"}},
    {"the optimizer in a file",
     {fmt::format(R"(offload={{"optimizer": true, "optimizer_folder": "{}"}})",
                  paths::temp_directory_path().string()),
      "ema={}"}},
    {"both, with a mean", {"offload={\"activations\": true, \"optimizer\": true}", "ema={}"}},
    {"the batch that fits",
     {R"(batch={"per_device": "auto", "global": 8, "memory_mb": 6})"},
     false},
    {"smaller batches", {R"(batch={"per_device": 2, "global": 8})"}, false},
    {"an optimizer of 8 bits", {R"(optimizer={"name": "adamw_8bit", "lr": 0.01})"}, false},
    {"bf16 weights, their optimizer on the host",
     {"precision=bf16_pure", "offload.optimizer=true",
      R"(optimizer={"name": "adamw", "lr": 0.01})"},
     false},
    {"the same with what rounding takes away",
     {R"(precision={"name": "bf16_pure", "update": "kahan"})", "offload.optimizer=true"},
     false},
    {"recompute of text", {"recompute=all"}, true, true},
    {"activations of text on the host", {"offload.activations=true"}, true, true},
    {"the loss in chunks", {"loss.chunk=24"}, false, true},
    {"all of it",
     {"loss.chunk=24", "recompute.budget_mb=1", "offload.activations=true"},
     false,
     true}};

constexpr int kSteps = 3;

// Where it ended: its last checkpoint.
struct Ended {
  std::string said, weights;
  std::uint64_t order = 0;
};

std::string trained_to_end(const recipe::Recipe& recipe,
                           const std::optional<paths::path>& resume = {}) {
  core::WorkerEnv env;
  env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  paths::create_directories(recipe.output);
  std::ofstream(paths::path(recipe.output) / "recipe.json") << recipe::to_json(recipe);
  Trainer trainer(recipe, env, resume, {});
  const core::ExitCode code = trainer.run();
  return fmt::format("{} at {}", static_cast<int>(code), trainer.step());
}

Ended end_of(const recipe::Recipe& recipe, std::string said) {
  const paths::path last =
      format::checkpoint_path(paths::path(recipe.output) / "checkpoints", kSteps);
  return {.said = std::move(said),
          .weights = format::model_digest(last),
          .order = format::read_state(last).order_digest};
}

// Tokens of 2 bytes.
void write_text(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 2000; ++i) file << static_cast<char>(i * 7 % 50) << '\0';
}

// What makes the tiny run one of a language model.
std::vector<std::string> text_changes(const testing::TinyRun& tiny) {
  write_text(tiny.path("text.bin"));
  return {R"(model={"name": "gpt2", "vocab_size": 50, "positions": 16, "dim": 16, "depth": 3,
             "heads": 2, "dropout": 0.1})",
          "data.val=null", "data.train=null", "data.train.tokens=" + tiny.path("text.bin"),
          "data.context=16"};
}

// The run with an option; cut after its first step and gone on with, or not.
Ended run_of(const testing::TinyRun& tiny, const MemoryOption& option, bool cut) {
  std::vector<std::string> changes{testing::kVitChange};
  if (option.text) changes = text_changes(tiny);
  changes.insert(changes.end(), {"batch.per_device=8", fmt::format("steps={}", kSteps),
                                 "clip.norm=0.5", "output=" + tiny.path(cut ? "cut" : "whole")});
  changes.insert(changes.end(), option.changes.begin(), option.changes.end());
  const recipe::Recipe recipe = tiny.recipe(changes);
  paths::remove_all(recipe.output);
  if (!cut) return end_of(recipe, testing::said_apart([&] { return trained_to_end(recipe); }));
  CHECK(testing::said_apart([&] {
          core::install_stop_handlers();
          std::raise(SIGTERM);
          return trained_to_end(recipe);
        }) == "75 at 1");
  const paths::path first = format::checkpoint_path(paths::path(recipe.output) / "checkpoints", 1);
  return end_of(recipe, testing::said_apart([&] { return trained_to_end(recipe, first); }));
}

}  // namespace

TEST_CASE("options that save memory keep the order of samples, and resumes their bits") {
  const testing::TinyRun tiny;
  const std::vector<Ended> without{
      run_of(tiny, {.name = "images", .changes = {}}, false),
      run_of(tiny, {.name = "text", .changes = {}, .same_bits = true, .text = true}, false)};
  for (const MemoryOption& option : kOptions) {
    CAPTURE(std::string(option.name));
    const Ended& plain = without.at(option.text ? 1 : 0);
    CHECK(plain.said == "0 at 3");
    const Ended whole = run_of(tiny, option, false);
    CHECK(whole.said == "0 at 3");
    CHECK(whole.order == plain.order);
    if (option.same_bits) {
      CHECK(whole.weights == plain.weights);
    } else {
      CHECK(whole.weights != plain.weights);
    }
    const Ended cut = run_of(tiny, option, true);
    CHECK(cut.said == "0 at 3");
    CHECK(cut.order == plain.order);
    CHECK(cut.weights == whole.weights);
  }
}

TEST_CASE("bf16 weights become the same with their optimizer on the host") {
  const testing::TinyRun tiny;
  const std::vector<std::string> updates{"stochastic", "kahan"};
  for (const std::string& update : updates) {
    CAPTURE(update);
    const std::string precision =
        fmt::format(R"(precision={{"name": "bf16_pure", "update": "{}"}})", update);
    const Ended beside = run_of(tiny, {.name = "beside", .changes = {precision}}, false);
    const Ended hosted =
        run_of(tiny, {.name = "hosted", .changes = {precision, "offload.optimizer=true"}}, false);
    CHECK(hosted.said == "0 at 3");
    CHECK(hosted.weights == beside.weights);
  }
}

}  // namespace scaletrain::train
