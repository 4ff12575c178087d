// scaletrain-worker import: weights from elsewhere as a checkpoint.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// `scaletrain checkpoint import` becomes it, with the same words behind "import".
int run_import(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
