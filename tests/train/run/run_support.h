// A small run for tests: an mlp on a few raw images, all in a folder of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/job/worker_env.h"
#include "lib/recipe/recipe.h"
#include "tests/temporary_folder.h"

namespace scaletrain::testing {

// A change of it: a vit whose activations take about a megabyte a sample, and its weights little.
inline constexpr const char* kVitChange =
    R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 1, "dim": 16, "depth": 12,
              "heads": 2, "dropout": 0.1})";

class TinyRun {
 public:
  TinyRun();  // writes 24 training and 10 validation samples of 8x8

  // An mlp of 4 steps, 6 an epoch; `changes` are what --set takes: "steps=9".
  recipe::Recipe recipe(const std::vector<std::string>& changes = {}) const;
  std::string path(const std::string& name) const { return folder_.file(name); }

 private:
  test::TemporaryFolder folder_;
};

// Trains `recipe` in this process: "code 0 after step 4".
std::string ended(const recipe::Recipe& recipe,
                  const std::optional<std::filesystem::path>& resume = std::nullopt,
                  core::WorkerEnv env = {});

// "train 1, eval val 4, ..." of metrics.jsonl in a run's folder, without checkpoints, which stand
// where they were written.
std::string lines(const std::filesystem::path& run);

// What `body` says in a process of its own: it may start threads, the test process may not.
std::string said_apart(const std::function<std::string()>& body);

// What `body` writes to standard error, in a process of its own too; "error: TEXT" where it throws.
std::string logged_apart(const std::function<void()>& body);

}  // namespace scaletrain::testing
