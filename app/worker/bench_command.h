// `scaletrain-worker bench`: what a step of a recipe costs on this rank and its peers.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Rank 0 writes the answer into --out: {"peak_bytes": {"total": n, "parameters": n, ...}}, or
// {"step_s": x}. The result is the exit status.
int run_bench(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
