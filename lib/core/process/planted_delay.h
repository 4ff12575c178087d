// Artificial delays for tests, planted by the environment variable SCALETRAIN_FAULT, never by a
// recipe key.
//
//   SCALETRAIN_FAULT=KIND@NUMBER[,RANK]=MILLISECONDS[;...]
//
//   slow-start        before the model is built; NUMBER counts starts of the process
//   slow-batch        before the training thread takes a batch
//   slow-copy         while a batch is prepared and copied to the device
//   slow-forward, slow-backward, slow-optimizer   in this part of a step
//   slow-collective   at the start of a collective
//   slow-evaluation   in each batch of an evaluation
//   slow-checkpoint   in each checkpoint, while training waits for it
//
// The delay happens from the NUMBERth time on that a rank comes to the place, on any rank without
// RANK. A sleep that a busy machine ends late shortens the next one at its place, so that together
// they last as long as planned. Faults are separated by ";", those of lib/train/rules/fault.h among
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::core {

enum class DelayPlace : std::uint8_t {
  kStart,
  kBatch,
  kCopy,
  kForward,
  kBackward,
  kOptimizer,
  kCollective,
  kEvaluation,
  kCheckpoint
};
inline constexpr std::size_t kDelayPlaces = 9;

struct PlantedDelay {
  DelayPlace place = DelayPlace::kStart;
  std::int64_t first = 1;   // delays from this visit of the place on
  std::optional<int> rank;  // nullopt: all ranks
  std::int64_t milliseconds = 0;
};

// Returns the faults in the environment variable; empty if it is not set.
std::vector<std::string> planted_faults();

// Parses a delay; nullopt if it is another kind of fault. Throws core::UsageError for an invalid
// delay.
std::optional<PlantedDelay> parse_delay(std::string_view fault);

// Sleeps if the environment variable has a delay for this place; costs one test otherwise. May be
// called from any thread.
void delay_if_planted(DelayPlace place);

}  // namespace scaletrain::core
