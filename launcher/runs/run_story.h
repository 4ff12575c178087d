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

// Returns sentences in order of time. Consecutive checkpoints or skipped steps are one sentence. A
// run without journal.jsonl has its starts and its last failure.
std::vector<StoryLine> run_story(const RunRecord& run);

// Returns a headline, a line for each sentence with its local time, then the time ledger.
std::string story_text(const RunRecord& run);
// {"run", "name", "state", "attempts", "events": [{"time", "text"}], "times": ledger_json()}.
RunJson story_json(const RunRecord& run);

}  // namespace scaletrain::launcher
