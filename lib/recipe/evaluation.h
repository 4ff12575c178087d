// Flags of `scaletrain eval` and `scaletrain predict`: declared once, for the launcher, which
// checks them, and for the worker, which does the work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"
#include "lib/recipe/sections/data/data.h"

namespace scaletrain::recipe {

struct Recipe;

struct EvaluationRequest {
  std::string checkpoint;  // or a run's folder
  std::string
      weights{};  // lib/format/checkpoint/checkpoint_weights.h; "": the mean where there is one
  std::vector<std::string> data{};  // shards, a folder or token files in place of the run's sets
  std::string set{};        // "val", "test", or a name of data.extra; "": the first there is
  std::string nproc = "1";  // ranks; the launcher's
  std::int64_t batch = 0;   // samples of a rank at a time; 0: as the run
  std::string device = "auto";
  std::vector<std::string> overrides{};  // KEY=VALUE of the run's recipe
  bool json = false;
  std::string predictions{}, html{};  // files to write; "": none
  std::string worker{};               // the program that does it; "": ours
};

struct PredictionRequest {
  std::string checkpoint, weights{};  // as above
  std::vector<std::string> inputs{};  // images and folders, or shards
  std::int64_t top = 5;
  std::string nproc = "1";  // as above
  std::int64_t batch = 0;
  std::string device = "auto";
  bool csv = false, json = false;
  std::string worker{};
};

void add_evaluation_flags(CLI::App& command, EvaluationRequest& asked);
void add_prediction_flags(CLI::App& command, PredictionRequest& asked);

// The --set of a recipe that these amount to; `reads_tokens`: what /data/train is of.
std::vector<std::string> overrides_of(const EvaluationRequest& asked, bool reads_tokens);
std::vector<std::string> overrides_of(const PredictionRequest& asked);

// "val", "test" or "extra/NAME": what `asked` means of the sets that `data` has. Throws
// core::UsageError naming those.
std::string set_of(const EvaluationRequest& asked, const Data& data);

// Throws core::UsageError for a file that cannot be written of `task`, a row of tasks.def.
void check_files(const EvaluationRequest& asked, const std::string& task);

// Throws core::UsageError where the model of `checkpoint`, whose recipe is `stored`, does not give
// each image one class.
void check_labels_images(const std::string& checkpoint, const Recipe& stored);

}  // namespace scaletrain::recipe
