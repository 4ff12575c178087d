// Labels as the text of a .cls: the number of a class, or a list of such numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace scaletrain::format {

inline constexpr std::int64_t kMaxLabelBytes = 1 << 16;  // limit for a list; 32 for a number

// Parses a class number in decimal text, with optional white space around it; nullopt for anything
// else.
std::optional<std::int64_t> parse_label(std::string_view text);

// Parses class numbers from a JSON list "[1, 5, 7]", which may be empty, or separated by commas or
// white space, "1 5 7"; a single number is a list of one. nullopt for anything else.
std::optional<std::vector<std::int64_t>> parse_labels(std::string_view text);

// Returns a class that a list has more than once, or nullopt. Such lists are mostly multi-hot rows
// (a zero or one for each class).
std::optional<std::int64_t> repeated_label(std::span<const std::int64_t> labels);

// True if a list has only zeros and ones.
bool is_zeros_and_ones(std::span<const std::int64_t> labels);

}  // namespace scaletrain::format
