#include "lib/train/integrity/bit_digest.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <limits>

#include "lib/train/rules/bit_flip.h"

namespace scaletrain::train {
namespace {

std::int64_t digest(const at::Tensor& tensor) { return bit_digest(tensor).item<std::int64_t>(); }

}  // namespace

TEST_CASE("each flip of one bit changes the digest, in every dtype") {
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kByte, at::kLong}) {
    const at::Tensor tensor = at::arange(1, 8).to(type);
    const std::int64_t before = digest(tensor);
    const int bits = 8 * static_cast<int>(tensor.itemsize());
    int unseen = 0;
    for (std::int64_t index = 0; index < 7; ++index) {
      for (int bit = 0; bit < bits; ++bit) {
        flip_bit({tensor}, index, bit);
        unseen += digest(tensor) == before ? 1 : 0;
        flip_bit({tensor}, index, bit);
      }
    }
    CAPTURE(type);
    CHECK(unseen == 0);
    CHECK(digest(tensor) == before);
  }
}

TEST_CASE("the digest depends on positions and bits, not on strides or values alone") {
  const at::Tensor matrix = at::arange(12, at::kFloat).view({3, 4});
  CHECK(digest(matrix) == digest(matrix.t().contiguous().t()));
  CHECK(digest(matrix) != digest(matrix.flip(0)));
  CHECK(digest(at::zeros({2})) != digest(at::tensor({0.F, -0.F})));
  const at::Tensor nan = at::full({2}, std::numeric_limits<float>::quiet_NaN());
  CHECK(digest(nan) == digest(nan.clone()));
  CHECK(digest(at::zeros({0})) == 0);
}

TEST_CASE("elements of a later chunk count too, and swapped chunks have another digest") {
  const std::int64_t chunk = std::int64_t{1} << 17;
  const at::Tensor tensor = at::arange(3 * chunk + 5, at::kFloat);
  const std::int64_t before = digest(tensor);
  for (const std::int64_t index : {chunk - 1, chunk, 3 * chunk + 4}) {
    flip_bit({tensor}, index, 0);
    CHECK(digest(tensor) != before);
    flip_bit({tensor}, index, 0);
  }
  const at::Tensor swapped = at::cat({tensor.narrow(0, chunk, chunk), tensor.narrow(0, 0, chunk),
                                      tensor.narrow(0, 2 * chunk, chunk + 5)});
  CHECK(digest(swapped) != before);
}

TEST_CASE("digests of parts show the part with the element that differs") {
  const at::Tensor tensor = at::arange(10, at::kFloat).view({2, 5});
  const at::Tensor before = part_digests(tensor, 1, 9, 3);  // [1, 4), [4, 7), [7, 9)
  flip_bit({tensor}, 6, 22);
  const at::Tensor after = part_digests(tensor, 1, 9, 3);
  CHECK(before.ne(after).nonzero().item<std::int64_t>() == 1);
  flip_bit({tensor}, 9, 22);  // outside
  CHECK(at::equal(part_digests(tensor, 1, 9, 3), after));
  CHECK(part_digests(tensor, 0, 2, 4)[3].item<std::int64_t>() == 0);
}

}  // namespace scaletrain::train
