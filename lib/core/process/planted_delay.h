// Delays on purpose, for tests: the environment variable SCALETRAIN_FAULT, never a recipe key.
//
//   SCALETRAIN_FAULT=KIND@NUMBER[,RANK]=MILLISECONDS[;...]
//
//   slow-start        before the model is built; counted in starts of the process
//   slow-batch        before the training thread takes a batch
//   slow-copy         in the preparation of a batch, with its copy to the device
//   slow-forward, slow-backward, slow-optimizer    in this part of a step
//   slow-collective   where a collective is entered
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
  std::int64_t first = 1;   // visit of the place from which on it happens
  std::optional<int> rank;  // nullopt: all
  std::int64_t milliseconds = 0;
};

// The faults of the environment variable; empty if it is not set.
std::vector<std::string> planted_faults();

// The delay that one part names; nullopt: it is a fault of another kind. Throws core::UsageError
// for a delay of another form.
std::optional<PlantedDelay> parse_delay(std::string_view fault);

// Sleeps where the environment variable asks for it. May be called by any thread; costs one test
// otherwise.
void delay_if_planted(DelayPlace place);

}  // namespace scaletrain::core
