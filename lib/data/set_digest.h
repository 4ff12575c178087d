// What tells one set from another that has its size.
#pragma once

#include <string>

#include "lib/data/dataset.h"

namespace scaletrain::data {

// XXH3-64 of names, labels and bytes of 16 samples that lie evenly spread over the set, as 16
// hexadecimal digits; it reads them. Throws what reading throws.
std::string set_digest(const Dataset& dataset);

}  // namespace scaletrain::data
