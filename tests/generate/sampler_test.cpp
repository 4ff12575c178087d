#include "lib/generate/sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::generate {
namespace {

// Shares of 0.5, 0.25, 0.125, 0.125.
const std::vector<float> kScores{std::log(1.0F), std::log(4.0F), std::log(2.0F), std::log(1.0F)};

// How often each token is drawn in 4,000 draws, as a share.
std::map<std::int64_t, double> shares(const Sampling& sampling) {
  constexpr int kDraws = 4000;
  const Sampler sampler(sampling);
  std::map<std::int64_t, double> result;
  for (int i = 0; i < kDraws; ++i) {
    result[sampler.draw(kScores, static_cast<std::uint64_t>(i))] += 1.0 / kDraws;
  }
  return result;
}

}  // namespace

TEST_CASE("tokens are drawn by the softmax of their scores over the temperature") {
  struct Case {
    const char* name;
    Sampling sampling;
    std::map<std::int64_t, double> expected;
  };
  const std::vector<Case> cases{
      {"as they are", {}, {{0, 0.125}, {1, 0.5}, {2, 0.25}, {3, 0.125}}},
      // Squared: 1, 16, 4, 1 of 22.
      {"colder",
       {.temperature = 0.5},
       {{0, 1 / 22.0}, {1, 16 / 22.0}, {2, 4 / 22.0}, {3, 1 / 22.0}}},
      {"0 is the best", {.temperature = 0}, {{1, 1}}},
      {"the two best", {.top_k = 2}, {{1, 2 / 3.0}, {2, 1 / 3.0}}},
      {"more than there are", {.top_k = 9}, {{0, 0.125}, {1, 0.5}, {2, 0.25}, {3, 0.125}}},
      {"one best", {.top_k = 1}, {{1, 1}}},
      {"three reach 0.8, the first of equals",
       {.top_p = 0.8},
       {{0, 1 / 7.0}, {1, 4 / 7.0}, {2, 2 / 7.0}}},
      {"one is more than the part", {.top_p = 0.01}, {{1, 1}}},
      // Of the three best, 4/7 and 2/7 reach 0.8.
      {"top_p is of what top_k leaves", {.top_k = 3, .top_p = 0.8}, {{1, 2 / 3.0}, {2, 1 / 3.0}}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const auto found = shares(one.sampling);
    REQUIRE(found.size() == one.expected.size());
    for (const auto& entry : one.expected) {
      const std::int64_t token = entry.first;
      CAPTURE(token);
      REQUIRE(found.contains(token));
      CHECK(std::abs(found.at(token) - entry.second) < 0.03);  // four deviations of 4,000 draws
    }
  }
}

TEST_CASE("a seed, a text and a number give one token, other seeds and texts others") {
  const auto tokens_of = [](std::uint64_t seed, std::uint64_t text) {
    std::vector<std::int64_t> tokens;
    for (std::uint64_t number = 0; number < 50; ++number) {
      tokens.push_back(Sampler({.seed = seed, .text = text}).draw(kScores, number));
    }
    return tokens;
  };
  CHECK((tokens_of(1, 0) == tokens_of(1, 0)));
  CHECK((tokens_of(1, 0) != tokens_of(2, 0)));
  CHECK((tokens_of(1, 0) != tokens_of(1, 1)));
}

TEST_CASE("scores that are not finite are no model's") {
  const std::vector<float> scores{0, std::numeric_limits<float>::quiet_NaN()};
  CHECK_THROWS_WITH_AS(Sampler({}).draw(scores, 0),
                       "model: computes logits that are not finite\n  use another checkpoint",
                       core::CheckpointError);
}

}  // namespace scaletrain::generate
