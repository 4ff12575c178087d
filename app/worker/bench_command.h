// `scaletrain-worker bench`: measures memory or time of a recipe's step on all ranks.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Rank 0 writes the result to --out: {"peak_bytes": {"total": n, "parameters": n, ...}}, or
// {"step_s": x}. Returns the exit status.
int run_bench(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
