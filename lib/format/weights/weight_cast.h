// Converts tensors to another dtype, or quantizes them to 8-bit integers with scales.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/format/weights/weight_write.h"

namespace scaletrain::format {

// Rounds a floating-point tensor to `dtype` (F32, F16 or BF16); returns other tensors unchanged.
// Throws core::CheckpointError naming the tensor if a value is too large for `dtype`.
OwnedTensor cast_tensor(OwnedTensor tensor, std::string_view dtype);

// True if a tensor is quantized to integers: a floating "*.weight" of two or more
// dimensions.
bool is_quantised(const OwnedTensor& tensor);

struct QuantisedTensor {
  OwnedTensor values;  // I8, -127 to 127, with the tensor's name and shape
  OwnedTensor scales;  // F32, "NAME_scale", same number of dimensions: size of `dim`, otherwise 1
};

// Symmetric weight-only quantization, weight = values * scales. For each index of the output
// dimension `dim`, scale = max |weight| / 127 and value = round(weight / scale), ties to even
// (Krishnamoorthi, Quantizing deep convolutional networks, 2018, section 2.2).
QuantisedTensor quantise_tensor(const OwnedTensor& tensor, std::size_t dim);

}  // namespace scaletrain::format
