// Multi-label targets: the label of a sample as a flag for each class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace scaletrain::data {

// How a list label is read (/data/label_format).
enum class ListFormat {
  kAuto,          // as class numbers; refuses a list that may be a multi-hot row
  kClassNumbers,  // [1, 4]: classes 1 and 4
  kMultiHot,      // [0, 1, 0, 0, 1]: a zero or one for each class
};

struct LabelProblem {
  std::string found, remedy;  // as in core::Error
};

// Sets `flags`, one for each class, to 1 for the classes in `labels` and to 0 for the others.
// Returns the problem of an invalid label; `flags` are then undefined.
std::optional<LabelProblem> set_class_flags(std::span<const std::int64_t> labels, ListFormat format,
                                            std::span<std::uint8_t> flags);

// Returns the problem of a label outside 0..num_classes-1; nullopt for a valid one.
std::optional<LabelProblem> check_label(std::int64_t label, std::int64_t num_classes);

}  // namespace scaletrain::data
