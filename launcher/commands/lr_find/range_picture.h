// SVG picture of a learning rate range test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/lr_find/range_curve.h"

namespace scaletrain::launcher {

// Returns a picture of 720 x 400 pixels without external references: the losses of single steps as
// dots, the smoothed loss as a line, a logarithmic axis of learning rates, and the suggestion.
// Colours follow the reader's light or dark setting. `title` is escaped.
std::string range_picture(const std::string& title, const std::vector<RangePoint>& points,
                          const std::vector<double>& smoothed,
                          const std::optional<RateSuggestion>& suggestion);

}  // namespace scaletrain::launcher
