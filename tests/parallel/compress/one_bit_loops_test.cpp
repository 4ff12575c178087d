#include "lib/parallel/compress/one_bit_loops.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace scaletrain::parallel;

struct Message {
  explicit Message(std::size_t blocks)
      : high_means(blocks), low_means(blocks), codes(blocks * kOneBitBlock / 8) {}
  std::vector<float> high_means, low_means;
  std::vector<std::uint8_t> codes;
};

Message encoded(const std::vector<float>& values, const std::vector<float>& padding) {
  Message message(padding.size());
  encode_one_bit(values, padding, message.high_means, message.low_means, message.codes);
  return message;
}

std::vector<float> decoded(const Message& message) {
  std::vector<float> values(message.high_means.size() * kOneBitBlock);
  decode_one_bit(message.high_means, message.low_means, message.codes, values);
  return values;
}

TEST_CASE("each number becomes the mean of those of its sign, of its own block") {
  std::vector<float> values;
  for (std::size_t i = 0; i < 3 * kOneBitBlock; ++i) {
    values.push_back(static_cast<float>((i * 2'654'435'761U >> 7) % 1000) - 420.0F);
  }
  values[5] = 0;
  values[6] = -0.0F;
  const std::vector<float> found = decoded(encoded(values, {0, 0, 0}));
  for (std::size_t block = 0; block < 3; ++block) {
    double sums[2] = {}, counts[2] = {};
    for (std::size_t i = block * kOneBitBlock; i < (block + 1) * kOneBitBlock; ++i) {
      sums[values[i] >= 0 ? 1 : 0] += values[i];
      counts[values[i] >= 0 ? 1 : 0] += 1;
    }
    for (std::size_t i = block * kOneBitBlock; i < (block + 1) * kOneBitBlock; ++i) {
      const std::size_t sign = values[i] >= 0 ? 1 : 0;
      REQUIRE(found[i] == doctest::Approx(sums[sign] / counts[sign]).epsilon(1e-5));
    }
  }
}

TEST_CASE("the first number of eight is the lowest bit") {
  std::vector<float> values(kOneBitBlock, -1.0F);
  values[0] = values[3] = values[15] = 1;
  const Message message = encoded(values, {0});
  CHECK(message.codes[0] == 9);
  CHECK(message.codes[1] == 128);
}

TEST_CASE("zeros behind a matrix count for no mean") {
  std::vector<float> values(kOneBitBlock, 0.0F);
  values[0] = 3;
  values[1] = 5;
  values[2] = -2;
  const Message message = encoded(values, {static_cast<float>(kOneBitBlock - 3)});
  CHECK(message.high_means[0] == 4);
  CHECK(message.low_means[0] == -2);
}

TEST_CASE("a block of one sign has no mean of the other, and what is not finite stays so") {
  const std::vector<float> negative(kOneBitBlock, -2.0F);
  CHECK(encoded(negative, {0}).high_means[0] == 0);
  CHECK(encoded(negative, {0}).low_means[0] == -2);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {kInfinity, -kInfinity, std::nanf("")}) {
    std::vector<float> values(kOneBitBlock, 1.0F);
    values[100] = value;
    const std::vector<float> found = decoded(encoded(values, {0}));
    CHECK_FALSE(std::isfinite(found[100]));
  }
}

}  // namespace
