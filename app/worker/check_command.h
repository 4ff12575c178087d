// Checks of `scaletrain doctor` that need this program: it starts with its LibTorch, and ranks
// reach each other.
#pragma once

namespace scaletrain::app {

// `scaletrain-worker check`: {"torch": "2.11.0", "devices": 8, "trouble": ""} on standard output;
// "trouble" says why CUDA cannot be used.
int run_check();

// `scaletrain-worker loopback cpu|cuda`, one of several ranks: sums over all ranks by Gloo or NCCL
// and checks the sum. Rank 0 prints {"ranks": 2, "connect_s": 0.1, "all_reduce_s": 0.001}, the
// median of a few. Throws core::Error where a rank or the sum is missing.
int run_loopback(int argc, char** argv);

}  // namespace scaletrain::app
