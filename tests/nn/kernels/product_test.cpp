#include "lib/nn/kernels/product.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include "lib/core/cpu.h"

namespace scaletrain::nn::kernels {

TEST_CASE("products by AVX2 and by AVX-512 are ATen's in doubles, and have the same bits") {
  if (!core::has_avx512()) return;
  torch::manual_seed(1);
  // Below, at and above a tile of rows; columns of one to all kinds of tiles.
  for (const std::int64_t rows : {1, 5, 6, 8, 21, 48}) {
    for (const std::int64_t columns : {8, 16, 24, 32, 40, 56, 64}) {
      for (const bool turned : {false, true}) {
        for (const bool add : {false, true}) {
          CAPTURE(rows);
          CAPTURE(columns);
          CAPTURE(turned);
          CAPTURE(add);
          const std::int64_t depth = 19;
          const at::Tensor a = at::randn({rows, depth}), b = at::randn({depth, columns + 8});
          const at::Tensor memory = turned ? a.t().contiguous() : a;
          const Left left = turned ? Left{memory.const_data_ptr<float>(), 1, rows}
                                   : Left{memory.const_data_ptr<float>(), depth, 1};
          const at::Tensor before = at::randn({rows, columns + 3});
          const at::Tensor narrow = before.clone(), wide = before.clone();
          avx2_product(rows, columns, depth, left, b.const_data_ptr<float>(), columns + 8,
                       narrow.mutable_data_ptr<float>(), columns + 3, add);
          avx512_product(rows, columns, depth, left, b.const_data_ptr<float>(), columns + 8,
                         wide.mutable_data_ptr<float>(), columns + 3, add);
          CHECK(at::equal(narrow, wide));
          at::Tensor expected = before.to(at::kDouble);
          const at::Tensor sums =
              at::mm(a.to(at::kDouble), b.narrow(1, 0, columns).to(at::kDouble));
          if (!add) expected.narrow(1, 0, columns).zero_();
          expected.narrow(1, 0, columns).add_(sums);
          CHECK(at::allclose(wide.to(at::kDouble), expected, 1e-5, 1e-5));
        }
      }
    }
  }
}

}  // namespace scaletrain::nn::kernels
