// `scaletrain-worker import`: imports weights as a checkpoint.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// `scaletrain checkpoint import` executes it with the same arguments after "import".
int run_import(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
