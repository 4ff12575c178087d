// Sampling of the next token from a model's logits: temperature, top-k and top-p.
#pragma once

#include <cstdint>
#include <span>

namespace scaletrain::generate {

// Sampling options: temperature, top_k and top_p are applied in this order.
struct Sampling {
  double temperature = 1;  // divides the logits; 0: greedy, always the highest logit
  std::int64_t top_k = 0;  // keeps the k highest tokens only; 0: all
  double top_p = 1;        // nucleus: keeps the fewest best tokens that reach it (Holtzman et al.,
                           // The Curious Case of Neural Text Degeneration, 2020, section 3.1)
  std::uint64_t seed = 0;
  std::uint64_t text = 0;  // number of the text, if several are sampled with one seed
};

class Sampler {
 public:
  explicit Sampler(const Sampling& sampling) : sampling_(sampling) {}

  // Draws token number `number` (from 0) of a text; the result depends only on the options,
  // `number` and `scores`. Ties: the lower token number ranks higher. Throws core::CheckpointError
  // if a score is not finite: the model is unusable.
  std::int64_t draw(std::span<const float> scores, std::uint64_t number) const;

 private:
  Sampling sampling_;
};

}  // namespace scaletrain::generate
