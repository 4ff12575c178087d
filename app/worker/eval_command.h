#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Evaluates a checkpoint on this rank (RANK and so on in the environment)
// (docs/reference/evaluate.md). The flags are those of lib/recipe/evaluation.h.
int run_eval(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
