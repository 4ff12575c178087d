// `scaletrain-worker store --fd N`: serves c10d's key-value store to a foreign program.
#pragma once

namespace scaletrain::app {

// N: a listening socket with the first client waiting. Serves until `scaletrain launch` kills it at
// the end of the attempt, or ends itself. Throws core::UsageError.
int run_store(int argc, char** argv);

}  // namespace scaletrain::app
