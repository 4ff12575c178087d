// Self-contained HTML page: the images that a classifier gets most wrong, and its confusion matrix.
#pragma once

#include <string>
#include <vector>

#include "lib/report/evaluation_text.h"

namespace scaletrain::report {

// An image of the page, in its stored encoding.
struct ShownPicture {
  Prediction prediction;
  std::string key, extension, bytes;  // extension such as "jpg", without a dot
};

// Returns the indices of wrong `predictions`, largest loss first, at most `most` of them.
std::vector<std::size_t> worst_mistakes(const std::vector<Prediction>& predictions,
                                        std::size_t most);

// Shows images of JPEG, PNG and WebP; for other formats only the key.
std::string mistakes_page(const Evaluation& evaluation, const std::vector<ShownPicture>& pictures);

}  // namespace scaletrain::report
