// Fault injection at collectives, for tests: the environment variable SCALETRAIN_FAULT, in which
// ";" separates several faults. lib/train/rules/fault.h has the faults at the start of a step,
// lib/core/process/planted_delay.h the delays.
//
//   SCALETRAIN_FAULT=KIND@STEP,RANK,COLLECTIVE[,NUMBER]
//
//   kill, stop    sends SIGKILL or SIGSTOP to the process of RANK when it enters COLLECTIVE, a kind
//                 (all-gather) or a name (parameters), in STEP, from 1; NUMBER, from 1, selects
//                 one of several in the step (default: the first)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lib/core/process/beat.h"

namespace scaletrain::dist {

struct CollectiveFault {
  int signal = 0;
  std::int64_t step = 0;
  int rank = 0;
  std::string collective;
  int number = 1;
};

// Returns nullopt if `text` names no collective. Throws core::UsageError if it does, but is not a
// valid fault.
std::optional<CollectiveFault> parse_collective_fault(const std::string& text);

// Called with the kind and name of each collective that this rank enters, on any thread.
using OnEnter = std::function<void(const char* kind, const char* name)>;

// Returns a hook that commits `fault`, in the step that `beat` shows; null if not for `rank`.
OnEnter commit_at_collective(const std::optional<CollectiveFault>& fault, int rank,
                             core::Beat beat);
// Like the above, for the fault in the environment variable; null if it is not set.
OnEnter read_collective_fault(int rank, core::Beat beat);

}  // namespace scaletrain::dist
