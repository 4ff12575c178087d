// Flags of `scaletrain generate`, shared by the launcher, which checks them, and the worker, which
// runs the command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::recipe {

struct Generation {
  std::string checkpoint;  // checkpoint or run folder
  std::string
      // Which weights (lib/format/checkpoint/checkpoint_weights.h); "": EMA weights if there are
      // any.
      weights;
  std::string prompt;
  std::string prompts;       // file with one prompt per line; "": a single prompt
  std::int64_t samples = 1;  // texts per prompt
  bool json = false;
  // As --tokenizer of `data tokenize`; "": the tokenizer of the run's token files.
  std::string tokenizer;
  // Text of the token that ends a document; "": as the tokenizer defines it.
  std::string end_of_text;
  double temperature = 1, top_p = 1;
  std::int64_t top_k = 0;
  std::int64_t seed = 0;
  std::int64_t max_tokens = 256;
  std::string nproc = "1";  // number of ranks; used by the launcher only
  std::string device = "auto";
  std::string precision;  // a row of precisions.def; "": as in the run
  std::string worker;     // program that runs the command; "": scaletrain-worker
};

// Returns the --set values that these flags stand for.
std::vector<std::string> overrides_of(const Generation& asked);

void add_generation_flags(CLI::App& command, Generation& generation);

}  // namespace scaletrain::recipe
