// Allowed numbers of a key: from(1).to(64), from(0).below(1), above(0).to(1), above(0).
#pragma once

#include <limits>
#include <string>

namespace scaletrain::recipe {

struct Range {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  // excludes `least` itself
  bool below_most = false;   // excludes `most` itself

  constexpr Range to(double value) const { return {least, value, above_least, false}; }
  constexpr Range below(double value) const { return {least, value, above_least, true}; }

  // False also for NaN.
  constexpr bool contains(double value) const {
    return (above_least ? value > least : value >= least) &&
           (below_most ? value < most : value <= most);
  }

  // Returns "from 1 to 64", "above 0 and below 1", "of at least 0", "above 0".
  std::string phrase() const;
};

constexpr Range from(double value) { return {.least = value}; }
constexpr Range above(double value) { return {.least = value, .above_least = true}; }

// Upper limit for counts of samples, threads and files: far above any sensible number.
inline constexpr double kMostCount = 1 << 20;

}  // namespace scaletrain::recipe
