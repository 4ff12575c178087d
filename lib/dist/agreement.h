// Compares, through the store, the settings that all ranks of a job must share: ranks that differ
// might not even enter the same collective.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::dist {

// One rank's value of a field. Its name is unique among the claims of one comparison.
struct Claim {
  std::string field;    // "optimizer.lr of the recipe"
  std::string value;    // a short text, or a digest; "": not known here, which agrees with any
  core::ExitCode code;  // exit code of the error if ranks differ
  std::string remedy;   // advice in that error
};

// Identifies a rank in the store's job.
struct StoreRank {
  int rank = 0;
  int world_size = 1;
};

// Returns when every rank has called it with the same `name`, which no other call of the job uses,
// and no claim differs from rank 0's. Rank 0 compares and sends the verdict, so each rank sends or
// receives three messages. Throws on all ranks: core::Error with the claim's code for rank 0's
// first claim that differs on another rank, naming that rank and its host; or core::StoppedError
// naming the ranks that did not arrive within `timeout`.
void agree(c10d::Store& store, StoreRank who, const std::string& name,
           const std::vector<Claim>& claims, std::chrono::milliseconds timeout);

}  // namespace scaletrain::dist
