#include "lib/checkpoint/adapt.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

// tests/parity/weights_test.py compares the numbers with timm's.

TEST_CASE("a kernel for other channels sees a grey picture as before") {
  const at::Tensor kernel = at::arange(2 * 3 * 4, at::kFloat).view({2, 3, 2, 2});
  for (const std::int64_t channels : {1, 2, 3, 4, 5, 6, 9}) {
    CAPTURE(channels);
    const at::Tensor adapted = checkpoint::adapt_channels(kernel, channels);
    CHECK((adapted.sizes() == at::IntArrayRef{2, channels, 2, 2}));
    // What all channels give together is what it was where they repeat all or none.
    if (channels % 3 == 0 || channels == 1) {
      CHECK((at::allclose(adapted.sum(1), kernel.sum(1))));
    }
  }
  const at::Tensor grey = checkpoint::adapt_channels(kernel, 1);
  CHECK((at::allclose(checkpoint::adapt_channels(grey, 3).sum(1), kernel.sum(1))));
  CHECK((at::equal(checkpoint::adapt_channels(kernel, 3), kernel)));
  CHECK((at::allclose(checkpoint::adapt_channels(kernel, 4).select(1, 3),
                      kernel.select(1, 0) * 0.75)));
}

TEST_CASE("positions that are a square beside the first tokens have its side") {
  CHECK((checkpoint::side_of_positions(197, 1) == 14));
  CHECK((checkpoint::side_of_positions(196, 0) == 14));
  CHECK((checkpoint::side_of_positions(2, 1) == 1));
  CHECK_FALSE(checkpoint::side_of_positions(198, 1).has_value());
  CHECK_FALSE(checkpoint::side_of_positions(1, 1).has_value());
  CHECK_FALSE(checkpoint::side_of_positions(0, 1).has_value());
}

TEST_CASE("positions are resampled as an image, without the first tokens") {
  // What grows evenly from row to row does so afterwards, away from the borders.
  const at::Tensor rows =
      at::arange(8, at::kFloat).view({8, 1, 1}).expand({8, 8, 2}).reshape({1, 64, 2});
  const at::Tensor embedding = at::cat({at::full({1, 1, 2}, 100.0), rows}, 1);
  const at::Tensor larger = checkpoint::resample_positions(embedding, 1, 16);
  CHECK((larger.sizes() == at::IntArrayRef{1, 257, 2}));
  CHECK((larger[0][0].eq(100).all().item<bool>()));
  const at::Tensor grid = larger.narrow(1, 1, 256).view({16, 16, 2});
  // The middle of row 7 of 16 is that of row 3.25 of 8.
  CHECK(grid[7][8][0].item<float>() == doctest::Approx(3.25));
  CHECK((at::allclose(checkpoint::resample_positions(embedding, 1, 8), embedding, 1e-5, 1e-5)));
  const at::Tensor plain = checkpoint::resample_positions(rows, 0, 16);
  CHECK((at::equal(plain, larger.narrow(1, 1, 256))));
}
