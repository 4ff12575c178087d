// Flags of `scaletrain eval` and `scaletrain predict`, shared by the launcher, which checks them,
// and the worker, which runs the command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"
#include "lib/recipe/sections/data/data.h"

namespace scaletrain::recipe {

struct Recipe;

struct EvaluationRequest {
  std::string checkpoint;  // checkpoint or run folder
  std::string
      // Which weights (lib/format/checkpoint/checkpoint_weights.h); "": EMA weights if there are
      // any.
      weights{};
  std::vector<std::string> data{};  // shards, a folder or token files instead of the run's data
  std::string set{};        // "val", "test", or a name in data.extra; "": the first existing one
  std::string nproc = "1";  // number of ranks; used by the launcher only
  std::int64_t batch = 0;   // samples per rank at a time; 0: as in the run
  std::string device = "auto";
  std::vector<std::string> overrides{};  // KEY=VALUE, changes of the run's recipe
  bool json = false;
  std::string predictions{}, html{};  // output files; "": none
  std::string worker{};               // program that runs the command; "": scaletrain-worker
};

struct PredictionRequest {
  std::string checkpoint, weights{};  // as in EvaluationRequest
  std::vector<std::string> inputs{};  // images and folders, or shards
  std::int64_t top = 5;
  std::string nproc = "1";  // as in EvaluationRequest
  std::int64_t batch = 0;
  std::string device = "auto";
  bool csv = false, json = false;
  std::string worker{};
};

void add_evaluation_flags(CLI::App& command, EvaluationRequest& asked);
void add_prediction_flags(CLI::App& command, PredictionRequest& asked);

// Returns the --set values that these flags stand for; `reads_tokens`: the run's data are token
// files.
std::vector<std::string> overrides_of(const EvaluationRequest& asked, bool reads_tokens);
std::vector<std::string> overrides_of(const PredictionRequest& asked);

// Returns the set to evaluate, "val", "test" or "extra/NAME", chosen from those that `data` has.
// Throws core::UsageError listing them.
std::string set_of(const EvaluationRequest& asked, const Data& data);

// Throws core::UsageError for an output file that `task`, a row of tasks.def, cannot produce.
void check_files(const EvaluationRequest& asked, const std::string& task);

// Throws core::UsageError if the model of `checkpoint`, whose recipe is `stored`, does not assign
// one class to each image.
void check_labels_images(const std::string& checkpoint, const Recipe& stored);

}  // namespace scaletrain::recipe
