// The label of a sample with any number of classes as a flag for each class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace scaletrain::data {

// How a label that is a list is read (/data/label_format).
enum class ListFormat {
  kAuto,          // as class numbers; a list that may be a multi-hot row is refused
  kClassNumbers,  // [1, 4]: classes 1 and 4
  kMultiHot,      // [0, 1, 0, 0, 1]: the same, a zero or one for each class
};

struct LabelProblem {
  std::string found, remedy;  // as in core::Error
};

// Sets `flags`, one for each class, to 1 for the classes of `labels` and to 0 for the others.
// Returns what is wrong with the label, after which `flags` means nothing.
std::optional<LabelProblem> set_class_flags(std::span<const std::int64_t> labels, ListFormat format,
                                            std::span<std::uint8_t> flags);

// Problem of a label that is not in 0..num_classes-1; nullopt for one that is.
std::optional<LabelProblem> check_label(std::int64_t label, std::int64_t num_classes);

}  // namespace scaletrain::data
