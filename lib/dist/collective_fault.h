// Faults on purpose where a rank enters a collective, for tests: the environment variable
// SCALETRAIN_FAULT, whose faults where a step begins are lib/train/rules/fault.h's and whose delays
// are lib/core/process/planted_delay.h's; ";" separates several.
//
//   SCALETRAIN_FAULT=KIND@STEP,RANK,COLLECTIVE[,NUMBER]
//
//   kill, stop    SIGKILL, SIGSTOP to the process of RANK where it enters COLLECTIVE, a kind
//                 (all-gather) or a name (parameters), in STEP, from 1; of several in the step the
//                 NUMBERth, from 1, without NUMBER the first
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

// nullopt where `text` names no collective. Throws core::UsageError where it is no fault then.
std::optional<CollectiveFault> parse_collective_fault(const std::string& text);

// Gets the kind and the name of each collective that this rank enters, on any thread.
using OnEnter = std::function<void(const char* kind, const char* name)>;

// Returns a hook that commits `fault`, in the step that `beat` shows; null if not for `rank`.
OnEnter commit_at_collective(const std::optional<CollectiveFault>& fault, int rank,
                             core::Beat beat);
// Like the above, for the fault in the environment variable; null if it is not set.
OnEnter read_collective_fault(int rank, core::Beat beat);

}  // namespace scaletrain::dist
