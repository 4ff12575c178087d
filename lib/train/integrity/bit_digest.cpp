#include "lib/train/integrity/bit_digest.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace scaletrain::train {
namespace {

// Elements multiplied at once: on a CPU the products stay in its cache.
constexpr std::int64_t kHostChunk = std::int64_t{1} << 17, kDeviceChunk = std::int64_t{1} << 24;

// Returns the elements in row-major order as integers of at least 32 bits.
at::Tensor bits_of(const at::Tensor& elements) {
  switch (elements.itemsize()) {
    case 1:
      return elements.view(at::kByte).to(at::kInt);
    case 2:
      return elements.view(at::kShort).to(at::kInt);
    case 4:
      return elements.view(at::kInt);
    default:
      return elements.view(at::kLong);
  }
}

at::Tensor row_major(const at::Tensor& tensor) { return tensor.detach().contiguous().view({-1}); }

at::Tensor digest_of(const at::Tensor& elements) {
  const at::NoGradGuard no_grad;
  const std::int64_t chunk = elements.is_cpu() ? kHostChunk : kDeviceChunk;
  const std::int64_t count = elements.numel();
  const auto options = elements.options();
  at::Tensor digest = at::zeros({}, options.dtype(at::kLong));
  const at::Tensor weights =
      at::arange(1, 2 * std::min(chunk, count) + 1, 2, options.dtype(at::kInt));
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t size = std::min(chunk, count - begin);
    const at::Tensor products =
        bits_of(elements.narrow(0, begin, size)) * weights.narrow(0, 0, size);
    digest.add_(products.sum(at::kLong), 2 * (begin / chunk) + 1);
  }
  return digest;
}

}  // namespace

at::Tensor bit_digest(const at::Tensor& tensor) { return digest_of(row_major(tensor)); }

at::Tensor part_digests(const at::Tensor& tensor, std::int64_t begin, std::int64_t end,
                        std::int64_t parts) {
  const at::Tensor elements = row_major(tensor);
  at::Tensor digests = at::zeros({parts}, elements.options().dtype(at::kLong));
  const std::int64_t size = (end - begin + parts - 1) / parts;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t from = std::min(begin + part * size, end);
    const std::int64_t to = std::min(from + size, end);
    digests[part].copy_(digest_of(elements.narrow(0, from, to - from)));
  }
  return digests;
}

}  // namespace scaletrain::train
