// Faults on purpose, for tests: the environment variable SCALETRAIN_FAULT, never a recipe key.
//
//   SCALETRAIN_FAULT=KIND@STEP[,RANK]    KIND: nan, kill, exit, throw, slow; STEP from 1; any rank
//   without RANK
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace scaletrain::train {

struct Fault {
  enum class Kind { kNan, kNans, kKill, kExit, kThrow, kSlow };
  Kind kind = Kind::kNan;
  std::int64_t step = 0;
  std::optional<int> rank;
};

// Reads the variable; nullopt where it is not set. Throws core::UsageError for another form.
std::optional<Fault> read_fault();
std::optional<Fault> parse_fault(const std::string& text);

// Commits `fault` where it is meant for this step and rank: kill is SIGKILL of this process, exit
// is status 7, throw a std::runtime_error, slow a second's wait. nan is the caller's: true means
// that this step's loss shall not be finite.
bool commit_fault(const std::optional<Fault>& fault, std::int64_t step, int rank);

}  // namespace scaletrain::train
