// Decides which of several sources gives the next sample, by weight: sources are counted, not drawn
// at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::data {

class SourceTurns {
 public:
  struct Turn {
    std::size_t source = 0;
    std::int64_t number = 0;  // counts the source's own turns, from 0
  };

  // `weights` are above 0.
  explicit SourceTurns(const std::vector<double>& weights);

  // Returns the source of turn `number`, from 0. Among the first x turns each source has its share
  // of x, to within one turn. `phase` (in units of 2^-32, below 2^32) shifts the sequence. If lanes
  // have evenly spaced phases, the first source also gets its share of all lanes' turns to within
  // one.
  Turn at(std::int64_t number, std::uint64_t phase = 0) const;

  // Returns how many of the first `turns` turns each source has.
  std::vector<std::int64_t> before(std::int64_t turns, std::uint64_t phase = 0) const;

 private:
  std::vector<std::uint64_t> shares_;  // source i's share among i, i + 1, ...; unit 2^-32
};

}  // namespace scaletrain::data
