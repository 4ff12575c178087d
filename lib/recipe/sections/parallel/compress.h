// Gradient compression, also of DiLoCo's outer gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/sections/parallel/parallel.h"
#include "lib/recipe/sections/parallel/sync.h"
#include "lib/recipe/sections/precision.h"
#include "lib/recipe/sections/sam.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Gradient compression by name: lib/parallel/compress/.
struct Compress {
  std::string name;         // "bf16", "fp16", "powersgd", "onebit", "int8"
  std::int64_t rank = 4;    // rank of PowerSGD's factors
  std::int64_t warmup = 0;  // initial steps without compression

  // True if the method has error feedback: adds what was not sent to the next gradients.
  bool feeds_back() const { return name != "bf16" && name != "fp16"; }
};

TypePtr describe(std::optional<Compress>& value);

// Other sections that gradient compression is checked against.
struct CompressedWith {
  const Parallel& parallel;
  const Precision& precision;
  const std::optional<Sam>& sam;
  const Sync& sync;
};
void check(const std::optional<Compress>& compress, const CompressedWith& with, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
