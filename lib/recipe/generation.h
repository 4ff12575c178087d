// Flags of `scaletrain generate`: declared once, for the launcher, which checks them, and for the
// worker, which does the work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::recipe {

struct Generation {
  std::string checkpoint;  // or a run's folder
  std::string
      weights;  // lib/format/checkpoint/checkpoint_weights.h; "": the mean where there is one
  std::string prompt;
  std::string prompts;       // a file with one in each line; "": there is one
  std::int64_t samples = 1;  // texts of each
  bool json = false;
  std::string tokenizer;    // as data tokenize takes it; "": that of the run's token files
  std::string end_of_text;  // the text of the token that ends a document; "": the tokenizer's own
  double temperature = 1, top_p = 1;
  std::int64_t top_k = 0;
  std::int64_t seed = 0;
  std::int64_t max_tokens = 256;
  std::string nproc = "1";  // ranks; the launcher's
  std::string device = "auto";
  std::string precision;  // precisions.def; "": the run's
  std::string worker;     // the program that does it; "": ours
};

// The --set of a recipe that it amounts to.
std::vector<std::string> overrides_of(const Generation& asked);

void add_generation_flags(CLI::App& command, Generation& generation);

}  // namespace scaletrain::recipe
