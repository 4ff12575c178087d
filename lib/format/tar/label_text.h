// Labels as the text of a .cls: the number of a class, or a list of such numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace scaletrain::format {

inline constexpr std::int64_t kMaxLabelBytes = 1 << 16;  // limit for a list; 32 for a number

// A class number in decimal text, white space around it allowed; nullopt for anything else.
std::optional<std::int64_t> parse_label(std::string_view text);

// Class numbers as a JSON list, "[1, 5, 7]", which may be empty, or with commas or white space
// between them, "1 5 7"; a number alone is a list of one. nullopt for anything else.
std::optional<std::vector<std::int64_t>> parse_labels(std::string_view text);

// A class that a list names more than once; nullopt where there is none. Lists that do are mostly
// multi-hot rows, a zero or one for each class.
std::optional<std::int64_t> repeated_label(std::span<const std::int64_t> labels);

// True for a list of nothing but zeros and ones.
bool is_zeros_and_ones(std::span<const std::int64_t> labels);

}  // namespace scaletrain::format
