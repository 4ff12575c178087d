// A page of HTML that stands alone: the pictures that a classifier gets most wrong, and what it
// takes for what.
#pragma once

#include <string>
#include <vector>

#include "lib/report/evaluation_text.h"

namespace scaletrain::report {

// Of a picture that is shown: as it is stored.
struct ShownPicture {
  Prediction prediction;
  std::string key, extension, bytes;  // "jpg", without a dot
};

// Numbers in `predictions` of those that are wrong, with the largest loss first, `most` of them.
std::vector<std::size_t> worst_mistakes(const std::vector<Prediction>& predictions,
                                        std::size_t most);

// Pictures are shown as JPEG, PNG or WebP; of any other format stands the key alone.
std::string mistakes_page(const Evaluation& evaluation, const std::vector<ShownPicture>& pictures);

}  // namespace scaletrain::report
