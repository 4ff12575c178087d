// `scaletrain-worker store --fd N`: serves c10d's key-value store to a foreign program.
#pragma once

namespace scaletrain::app {

// N is a listening socket, on which the first client already waits. Serves until it is killed, by
// `scaletrain launch` at the end of the attempt or with it. Throws core::UsageError.
int run_store(int argc, char** argv);

}  // namespace scaletrain::app
