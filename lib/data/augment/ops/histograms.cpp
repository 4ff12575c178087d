#include "lib/data/augment/ops/histograms.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "lib/data/image/clones.h"

namespace scaletrain::data {
namespace {

using Table = std::array<std::uint8_t, 256>;
using ChannelTables = std::array<Table, kChannels>;
using Histogram = std::array<std::int64_t, 256>;

template <class Value>
Table make_table(const Value& value) {
  Table table{};
  for (int i = 0; i < 256; ++i) {
    table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value(i));
  }
  return table;
}

void apply_tables(const ChannelTables& tables, Image& image) {
  const Table same = make_table([](int i) { return i; });
  if (std::count(tables.begin(), tables.end(), same) == kChannels) return;
  std::uint8_t* const end = image.pixels.data() + image.pixels.size();
  for (std::uint8_t* pixel = image.pixels.data(); pixel != end; pixel += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) pixel[c] = tables[c][pixel[c]];
  }
}

struct Extremes {
  std::array<std::uint8_t, kChannels> low{255, 255, 255}, high{};
};

// Minimum and maximum of each channel. Three vector registers hold 32 pixels, so that each byte
// position always has the same channel.
SCALETRAIN_CLONES Extremes extremes(const std::uint8_t* values, std::size_t count) {
  using Bytes32 = std::uint8_t __attribute__((vector_size(32)));
  constexpr std::size_t kLanes = 3 * sizeof(Bytes32);
  Bytes32 low[3] = {~Bytes32{}, ~Bytes32{}, ~Bytes32{}}, high[3] = {};  // NOLINT
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    for (std::size_t i = 0; i < 3; ++i) {
      Bytes32 bytes;
      std::memcpy(&bytes, values + at + i * sizeof bytes, sizeof bytes);
      low[i] = bytes < low[i] ? bytes : low[i];
      high[i] = bytes > high[i] ? bytes : high[i];
    }
  }
  Extremes result;
  const auto include = [&result](std::size_t channel, std::uint8_t least, std::uint8_t most) {
    result.low[channel] = std::min(result.low[channel], least);
    result.high[channel] = std::max(result.high[channel], most);
  };
  for (std::size_t i = 0; i < kLanes; ++i) {
    include(i % kChannels, low[i / sizeof(Bytes32)][i % sizeof(Bytes32)],
            high[i / sizeof(Bytes32)][i % sizeof(Bytes32)]);
  }
  for (std::size_t i = 0; at + i < count; ++i)
    include(i % kChannels, values[at + i], values[at + i]);
  return result;
}

Table stretching(std::uint8_t low, std::uint8_t high) {
  if (high <= low) return make_table([](int i) { return i; });
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = -static_cast<double>(low) * scale;
  return make_table([&](int i) {
    return std::clamp(static_cast<int>(static_cast<double>(i) * scale + offset), 0, 255);
  });
}

std::array<Histogram, kChannels> histograms(const Image& image) {
  // Neighbours are often equal: alternating between counters avoids waiting for the previous
  // increment.
  std::array<std::array<std::uint32_t, 256>, std::size_t{2} * kChannels> counts{};
  const std::uint8_t* in = image.pixels.data();
  const std::uint8_t* const end = in + image.pixels.size();
  for (; end - in >= 6; in += 6) {
    for (std::size_t i = 0; i < 6; ++i) ++counts[i][in[i]];
  }
  for (std::size_t i = 0; in < end; ++in, ++i) ++counts[i][*in];
  std::array<Histogram, kChannels> result{};
  for (std::size_t c = 0; c < kChannels; ++c) {
    for (std::size_t i = 0; i < 256; ++i) {
      result[c][i] = std::int64_t{counts[c][i]} + counts[c + kChannels][i];
    }
  }
  return result;
}

Table equalizing(const Histogram& histogram) {
  const auto last = std::find_if(histogram.rbegin(), histogram.rend(),
                                 [](std::int64_t count) { return count != 0; });
  const std::int64_t total = std::accumulate(histogram.begin(), histogram.end(), std::int64_t{0});
  const std::int64_t step = last == histogram.rend() ? 0 : (total - *last) / 255;
  if (step == 0) return make_table([](int i) { return i; });
  std::int64_t before = step / 2;
  return make_table([&](int i) {
    const std::int64_t value = std::min<std::int64_t>(before / step, 255);
    before += histogram[static_cast<std::size_t>(i)];
    return value;
  });
}

}  // namespace

void auto_contrast(Image& image) {
  const Extremes used = extremes(image.pixels.data(), image.pixels.size());
  ChannelTables tables{};
  std::transform(used.low.begin(), used.low.end(), used.high.begin(), tables.begin(), stretching);
  apply_tables(tables, image);
}

void equalize(Image& image) {
  const auto counts = histograms(image);
  ChannelTables tables{};
  std::transform(counts.begin(), counts.end(), tables.begin(), equalizing);
  apply_tables(tables, image);
}

}  // namespace scaletrain::data
