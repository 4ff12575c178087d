// The next token, drawn by the scores that a model gives to all of them.
#pragma once

#include <cstdint>
#include <span>

namespace scaletrain::generate {

// From which tokens it is drawn, and how evenly: the three are applied in this order.
struct Sampling {
  double temperature = 1;  // scores are divided by it; 0: always the token of the highest score
  std::int64_t top_k = 0;  // the so many best tokens only; 0: all
  double top_p = 1;        // the fewest best tokens that are as likely together (Holtzman et al.,
                           // The Curious Case of Neural Text Degeneration, 2020, section 3.1)
  std::uint64_t seed = 0;
  std::uint64_t text = 0;  // its number among several, each of which draws otherwise
};

class Sampler {
 public:
  explicit Sampler(const Sampling& sampling) : sampling_(sampling) {}

  // Token number `number` of a text, from 0: a function of the sampling, `number` and `scores`
  // alone. Of equal scores the first counts as better. Throws core::CheckpointError where no score
  // is finite: the model cannot be used.
  std::int64_t draw(std::span<const float> scores, std::uint64_t number) const;

 private:
  Sampling sampling_;
};

}  // namespace scaletrain::generate
