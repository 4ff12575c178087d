// The story of a run over all attempts, from its journal: what `explain run` prints.
#pragma once

#include <string>
#include <vector>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

struct StoryLine {
  double time = 0;   // Unix seconds
  std::string text;  // one sentence
};

// Sentences in the order of time. Checkpoints and skipped steps that follow each other are one
// sentence. A run without journal.jsonl has its starts and its last failure.
std::vector<StoryLine> run_story(const RunRecord& run);

// A headline, a line for each sentence with its local time, then where the time went.
std::string story_text(const RunRecord& run);
// {"run", "name", "state", "attempts", "events": [{"time", "text"}], "times": ledger_json()}.
RunJson story_json(const RunRecord& run);

}  // namespace scaletrain::launcher
