// Checks of `scaletrain doctor` that need the worker: it starts with its LibTorch, and ranks can
// communicate.
#pragma once

namespace scaletrain::app {

// `scaletrain-worker check`: prints {"torch": "2.11.0", "devices": 8, "trouble": ""}; "trouble" is
// the reason why CUDA cannot be used.
int run_check();

// `scaletrain-worker loopback cpu|cuda`, one of several ranks: runs an all-reduce over Gloo or NCCL
// and checks the sum. Rank 0 prints {"ranks": 2, "connect_s": 0.1, "all_reduce_s": 0.001}, the
// median of a few. Throws core::Error if a rank is missing or the sum is wrong.
int run_loopback(int argc, char** argv);

}  // namespace scaletrain::app
