// Collects the facts of a run's start that rank 0 shows and writes to start.json.
#pragma once

#include "lib/core/job/worker_env.h"
#include "lib/observe/start_block.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Uses facts in memory only; opens no data and starts no collective.
observe::StartFacts start_facts(const Run& run, const core::WorkerEnv& env);

}  // namespace scaletrain::train
