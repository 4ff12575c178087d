// Reads 8-bit quantized weights (lib/format/weights/weight_cast.h) as fp32 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "lib/format/weights/weight_file.h"

namespace scaletrain::format {

// Returns "NAME_scale" for "NAME".
std::string scale_name(const std::string& tensor);

class ScaledTensor {
 public:
  // Fills `out` from byte `offset` of a stored tensor on.
  using Read = std::function<void(const WeightTensor& tensor, std::span<std::byte> out,
                                  std::int64_t offset)>;

  // True if `values` are I8 and `scales` floating with as many dimensions, all of size 1 except at
  // most one, which has the size of `values`.
  static bool fits(const WeightTensor& values, const WeightTensor& scales);

  // fits(values, scales) must be true.
  ScaledTensor(WeightTensor values, WeightTensor scales);

  // Returns the description of the tensor as it is read: F32.
  WeightTensor described() const;

  // Reads values * scales in fp32, from byte `offset` of the described tensor on.
  void read(std::span<std::byte> out, std::int64_t offset, const Read& stored) const;

 private:
  WeightTensor values_, scales_;
  std::int64_t inner_ = 1;  // number of consecutive elements with one scale
};

}  // namespace scaletrain::format
