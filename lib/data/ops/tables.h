// Changes of an image value by value, as tables: to the last bit what Pillow's ImageEnhance and
// ImageOps do.
#pragma once

#include <array>
#include <cstdint>

#include "lib/data/image.h"

namespace scaletrain::data {

using Table = std::array<std::uint8_t, 256>;
using ChannelTables = std::array<Table, kChannels>;

void apply_table(const Table& table, Image& image);
void apply_tables(const ChannelTables& tables, Image& image);

// Each value `factor` times as far from `base` as it was; Pillow's Image.blend.
Table blend_table(double factor, std::uint8_t base);
// Values from `threshold` (0..256) on are inverted.
Table solarize_table(double threshold);
// Values below `threshold` rise by `amount` (timm's SolarizeAdd).
Table solarize_add_table(int amount, int threshold);
Table posterize_table(int bits);  // 0..8 upper bits are kept
Table invert_table();

// Of each channel, 0..255 stretched over what the image uses, or used evenly.
ChannelTables autocontrast_tables(const Image& image);
ChannelTables equalize_tables(const Image& image);

}  // namespace scaletrain::data
