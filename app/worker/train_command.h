// `scaletrain-worker train`: executes a resolved recipe as one rank.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

int run_train(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
