// Which of several sources has a turn, by their weights: counted, not drawn by chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::data {

class SourceTurns {
 public:
  struct Turn {
    std::size_t source = 0;
    std::int64_t number = 0;  // of the source's own turns
  };

  // `weights` are above 0.
  explicit SourceTurns(const std::vector<double>& weights);

  // Whose turn `number` is, from 0. Of the first x turns a source has its share of x, to within
  // one a source. `phase` moves whose turn comes first, in units of 2^-32, below 2^32: of lanes
  // with phases spread evenly, which take turns side by side, the first source has its share of all
  // turns to within one.
  Turn at(std::int64_t number, std::uint64_t phase = 0) const;

  // How many of the first `turns` turns each source has.
  std::vector<std::int64_t> before(std::int64_t turns, std::uint64_t phase = 0) const;

 private:
  std::vector<std::uint64_t> shares_;  // of a source among those from it on, in units of 2^-32
};

}  // namespace scaletrain::data
