// Tensors in other numbers: rounded, or as whole numbers of 8 bits with scales.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/format/weights/weight_write.h"

namespace scaletrain::format {

// A floating tensor rounded to `dtype`, F32, F16 or BF16; one of any other type as it is. Throws
// core::CheckpointError naming the tensor where a value is too large for `dtype`.
OwnedTensor cast_tensor(OwnedTensor tensor, std::string_view dtype);

// True if a tensor is quantized to integers: a floating "*.weight" of two or more
// dimensions.
bool is_quantised(const OwnedTensor& tensor);

struct QuantisedTensor {
  OwnedTensor values;  // I8, -127 to 127, of the tensor's name and shape
  OwnedTensor scales;  // F32, "NAME_scale", of as many dimensions: `dim`'s size, otherwise 1
};

// weight = values * scales, symmetric: for each index of dimension `dim`, which is the outputs',
// scale = max |weight| / 127 and value = round(weight / scale), ties to even. Weight-only
// quantisation by rounding to nearest (Krishnamoorthi, Quantizing deep convolutional networks,
// 2018, section 2.2).
QuantisedTensor quantise_tensor(const OwnedTensor& tensor, std::size_t dim);

}  // namespace scaletrain::format
