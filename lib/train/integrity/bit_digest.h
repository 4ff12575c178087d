// Digest of a tensor's bits, cheap on every device: an integer sum with weights by position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace scaletrain::train {

// Returns a 0-dim int64 on the tensor's device; only queues work there. Tensors of one dtype and
// size that differ in one element have different digests: an element's bits are multiplied by an
// odd number modulo 2^32 (of a wider element 2^64), and odd numbers have an inverse. Two tensors
// that differ in several elements have the same digest with a probability of about 2^-32. Integer
// sums do not depend on the order, so the digest is the same for any number of threads.
at::Tensor bit_digest(const at::Tensor& tensor);

// Returns the digests of `parts` equal parts of elements [begin, end) of `tensor`, in row-major
// order: int64 [parts]. The last parts may be shorter, or empty with digest 0.
at::Tensor part_digests(const at::Tensor& tensor, std::int64_t begin, std::int64_t end,
                        std::int64_t parts);

}  // namespace scaletrain::train
