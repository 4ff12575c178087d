// `scaletrain-worker train`: executes a resolved recipe as one rank.
#pragma once

namespace scaletrain::app {

int run_train(int argc, char** argv);

}  // namespace scaletrain::app
