#include "lib/data/ops/tables.h"

#include <algorithm>
#include <numeric>

#include "lib/data/ops/blend.h"

namespace scaletrain::data {
namespace {

using Histogram = std::array<std::int64_t, 256>;

template <class Value>
Table make_table(const Value& value) {
  Table table{};
  for (int i = 0; i < 256; ++i) {
    table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value(i));
  }
  return table;
}

std::array<Histogram, kChannels> histograms(const Image& image) {
  // Neighbours are often equal: counting them in turn avoids waiting for the count before.
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

Table equalize_table(const Histogram& histogram) {
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

Table autocontrast_table(const Histogram& histogram) {
  const auto used = [](std::int64_t count) { return count != 0; };
  const std::int64_t low =
      std::find_if(histogram.begin(), histogram.end(), used) - histogram.begin();
  const std::int64_t high =
      255 - (std::find_if(histogram.rbegin(), histogram.rend(), used) - histogram.rbegin());
  if (high <= low) return make_table([](int i) { return i; });
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = -static_cast<double>(low) * scale;
  return make_table([&](int i) {
    return std::clamp(static_cast<int>(static_cast<double>(i) * scale + offset), 0, 255);
  });
}

template <class TableOf>
ChannelTables for_each_channel(const Image& image, const TableOf& table_of) {
  const auto counts = histograms(image);
  ChannelTables tables{};
  std::transform(counts.begin(), counts.end(), tables.begin(), table_of);
  return tables;
}

}  // namespace

void apply_table(const Table& table, Image& image) {
  for (std::uint8_t& value : image.pixels) value = table[value];
}

void apply_tables(const ChannelTables& tables, Image& image) {
  std::uint8_t* const end = image.pixels.data() + image.pixels.size();
  for (std::uint8_t* pixel = image.pixels.data(); pixel != end; pixel += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) pixel[c] = tables[c][pixel[c]];
  }
}

Table blend_table(double factor, std::uint8_t base) {
  const auto alpha = static_cast<float>(factor);
  return make_table([&](int i) { return blend(base, static_cast<std::uint8_t>(i), alpha); });
}

Table solarize_table(double threshold) {
  return make_table([&](int i) { return i < threshold ? i : 255 - i; });
}

Table solarize_add_table(int amount, int threshold) {
  return make_table([&](int i) { return i < threshold ? std::min(255, i + amount) : i; });
}

Table posterize_table(int bits) {
  const int mask = 0xff << (8 - bits) & 0xff;
  return make_table([&](int i) { return i & mask; });
}

Table invert_table() {
  return make_table([](int i) { return 255 - i; });
}

ChannelTables autocontrast_tables(const Image& image) {
  return for_each_channel(image, autocontrast_table);
}

ChannelTables equalize_tables(const Image& image) {
  return for_each_channel(image, equalize_table);
}

}  // namespace scaletrain::data
