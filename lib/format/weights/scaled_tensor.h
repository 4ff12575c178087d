// Whole numbers of 8 bits with scales (lib/format/weights/weight_cast.h), read as the weights that
// they stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "lib/format/weights/weight_file.h"

namespace scaletrain::format {

// "NAME_scale" of "NAME".
std::string scale_name(const std::string& tensor);

class ScaledTensor {
 public:
  // Reads all of `out` from byte `offset` of a stored tensor on.
  using Read = std::function<void(const WeightTensor& tensor, std::span<std::byte> out,
                                  std::int64_t offset)>;

  // True if `values` are I8 and `scales` floating with as many dimensions, all of size 1 except at
  // most one, which has the size of `values`.
  static bool fits(const WeightTensor& values, const WeightTensor& scales);

  // They fit.
  ScaledTensor(WeightTensor values, WeightTensor scales);

  // As it is read: F32.
  WeightTensor described() const;

  // values * scales in fp32: those from byte `offset` of what is described on.
  void read(std::span<std::byte> out, std::int64_t offset, const Read& stored) const;

 private:
  WeightTensor values_, scales_;
  std::int64_t inner_ = 1;  // elements that have a scale together, one after the other
};

}  // namespace scaletrain::format
