#include "lib/data/image/resize_kernels.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("every version of the loops gives the same bytes") {
  constexpr std::int64_t kHeight = 9, kSlack = 32;
  // -300,000 + 3,000,000 + 2,000,000 - 505,696 is 2^22; upper and lower parts of 11 bits.
  const std::vector<ColumnWeights::Pair> shares{{{-147, 1464}, {1056, 1728}},
                                                {{976, -247}, {1152, 160}}};
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic}) {
    for (const auto& lengths : {std::pair{40, 40}, std::pair{7, 31}, std::pair{100, 9},
                                std::pair{64, 33}, std::pair{1, 5}, std::pair{333, 224}}) {
      const int from = lengths.first, to = lengths.second;
      CAPTURE(from);
      CAPTURE(to);
      ResizeAxis axis;
      axis.prepare(ResizeAxis::plan({0, from}, 1, to, {0, to}, filter));
      RowWeights weights;
      weights.prepare(axis);
      // Black and white beside each other make the cubic filter leave 0..255.
      const Image image = make_image(from + 20, kHeight, [](auto x, auto y, auto c) {
        return (x * 7 + y * 3) % 5 == 0 ? 255 : (x + y) % 3 == 0 ? 0 : 40 * x + y * y + c;
      });
      const auto bytes = static_cast<std::size_t>(to * kChannels);
      std::vector<std::vector<std::uint8_t>> results;
      for (const ResizeKernels& kernels : {plain_kernels(), best_kernels()}) {
        std::vector<std::uint8_t> one(bytes + kSlack), other(bytes + kSlack), sum(bytes + kSlack);
        kernels.rows(weights, image.row(2), image.row(3), one.data(), other.data());
        const std::int64_t columns = std::min<std::int64_t>(to, from) * kChannels;
        one.resize(bytes);
        other.resize(bytes);
        one.insert(one.end(), other.begin(), other.end());
        for (const std::int64_t count : {1, 2, 3, 4}) {
          std::vector<ColumnWeights::Pair> used = shares;
          if (count % 2 == 1) used[count / 2].upper[1] = used[count / 2].lower[1] = 0;
          kernels.columns(used.data(), count, image.row(1), image.width * kChannels, sum.data(),
                          columns);
          one.insert(one.end(), sum.begin(), sum.begin() + columns);
        }
        results.push_back(one);
      }
      CHECK(results[0] == results[1]);
    }
  }
}
