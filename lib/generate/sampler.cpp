#include "lib/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/philox.h"

namespace scaletrain::generate {
namespace {

// Returns the `count` highest tokens, highest first.
std::vector<std::size_t> best_tokens(std::span<const float> scores, std::size_t count) {
  std::vector<std::size_t> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  const auto better = [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(tokens.begin(), end, tokens.end(), better);
  tokens.resize(count);
  return tokens;
}

// Returns the number of `shares`, sorted in descending order, that reach `part` of their sum.
std::size_t fewest_with(const std::vector<double>& shares, double part) {
  const double wanted = part * std::accumulate(shares.begin(), shares.end(), 0.0);
  double sum = 0;
  std::size_t count = 0;
  while (count < shares.size() && (count == 0 || sum < wanted)) sum += shares[count++];
  return count;
}

// Uniform in [0, 1) with 53 bits, for token `number` of text `text`.
double uniform(std::uint64_t seed, std::uint64_t text, std::uint64_t number) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32U); };
  const core::PhiloxBlock block =
      core::philox4x32({low(number), high(number), low(text), high(text)}, {low(seed), high(seed)});
  const std::uint64_t bits = std::uint64_t{block[0]} << 32U | block[1];
  return std::ldexp(static_cast<double>(bits >> 11U), -53);
}

}  // namespace

std::int64_t Sampler::draw(std::span<const float> scores, std::uint64_t number) const {
  const bool finite =
      std::all_of(scores.begin(), scores.end(), [](float score) { return std::isfinite(score); });
  if (!finite) {
    throw core::CheckpointError("model", "computes logits that are not finite",
                                "use another checkpoint");
  }
  const auto [temperature, top_k, top_p, seed, text] = sampling_;
  const bool greedy = temperature == 0;
  const std::size_t count = greedy       ? 1
                            : top_k == 0 ? scores.size()
                                         : std::min(scores.size(), static_cast<std::size_t>(top_k));
  std::vector<std::size_t> tokens = best_tokens(scores, count);
  const double best = scores[tokens.front()];
  std::vector<double> shares;
  shares.reserve(tokens.size());
  for (const std::size_t token : tokens) {
    shares.push_back(greedy ? 1 : std::exp((scores[token] - best) / temperature));
  }
  shares.resize(fewest_with(shares, top_p));

  double left = uniform(seed, text, number) * std::accumulate(shares.begin(), shares.end(), 0.0);
  std::size_t at = 0;
  while (at + 1 < shares.size() && left >= shares[at]) left -= shares[at++];
  return static_cast<std::int64_t>(tokens[at]);
}

}  // namespace scaletrain::generate
