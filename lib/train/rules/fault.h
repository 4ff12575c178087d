// Fault injection for tests by the environment variable SCALETRAIN_FAULT, never by a recipe key.
//
//   SCALETRAIN_FAULT=KIND@STEP[,RANK]    STEP from 1; any rank without RANK
//   (where a collective is entered: lib/dist/collective_fault.h; delays of a given length:
//   lib/core/process/planted_delay.h; single-bit flips: bit_flip.h; ";" separates several, of
//   which one may be of this file)
//   nan, nans           the loss of this step, of all from it on, is not finite
//   spike               the loss and gradients of this step are 1000 times as large
//   kill, segv, stop    SIGKILL, SIGSEGV, SIGSTOP to this process
//   exit, throw, spin   status 7, an exception, an endless loop
//   oom                 what LibTorch throws where a device's memory runs out
//   slow, slows         a wait of 1 s in this step, of 50 ms in all from it on
//   slow-data           50 ms for each batch buffer from number STEP on
//   stuck-data          a data thread waits for ever for buffer number STEP
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/buffer.h"

namespace scaletrain::train {

struct Fault {
  enum class Kind {
    kNan,
    kNans,
    kSpike,
    kKill,
    kSegv,
    kStop,
    kExit,
    kThrow,
    kOom,
    kSpin,
    kSlow,
    kSlows,
    kSlowData,
    kStuckData
  };
  Kind kind = Kind::kNan;
  std::int64_t step = 0;
  std::optional<int> rank;
};

// Parses the environment variable; nullopt if it is not set or has only faults of other files.
// Throws core::UsageError for other forms.
std::optional<Fault> read_fault();
std::optional<Fault> parse_fault(const std::string& text);

// Commits `fault` if it is for this step and rank. Returns true for nan, where the caller must make
// this step's loss non-finite. Faults of data are committed by with_fault().
bool commit_fault(const std::optional<Fault>& fault, std::int64_t step, int rank);

// Returns the factor of this step's loss on this rank: 1000 for a planted spike, otherwise 1.
double planted_loss_factor(const std::optional<Fault>& fault, std::int64_t step, int rank);

// The pool that batches come from, slow or stuck where `fault` asks for that on this rank.
std::unique_ptr<core::BufferPool> with_fault(std::unique_ptr<core::BufferPool> pool,
                                             const std::optional<Fault>& fault, int rank);

}  // namespace scaletrain::train
