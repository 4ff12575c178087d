#include "lib/optim/block_codes.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace {

using namespace scaletrain::optim;

// `values` coded and decoded, as a piece that begins at `begin`.
at::Tensor there_and_back(const at::Tensor& values, bool has_signs, std::int64_t begin = 0) {
  const BlockCodes codes(has_signs, at::kCPU);
  const Coded coded = codes.zeros(values, begin);
  codes.encode(values, coded, begin);
  return codes.decode(coded, begin);
}

at::Tensor drawn(at::IntArrayRef shape) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{7}));
}

TEST_CASE(
    "there are 256 different values, which rise from -1 + 1/256 of a decade, or from 0, to 1") {
  for (const bool has_signs : {true, false}) {
    CAPTURE(has_signs);
    const at::Tensor values = at::tensor(code_values(has_signs));
    REQUIRE(values.numel() == 256);
    CHECK((values.diff().gt(0).all().item<bool>()));
    CHECK(values[255].item<float>() == 1);
    CHECK(values[has_signs ? 127 : 0].item<float>() == 0);
    // Of the last decade: 64 parts of [0.1, 1] with signs, 128 without; the middle of the last one.
    const double parts = has_signs ? 64 : 128;
    CHECK(values[254].item<float>() == doctest::Approx(1 - 0.45 / parts));
    // The smallest is the middle of [0.1, 1], or of its lower half, times 10^-6.
    CHECK(values[has_signs ? 128 : 1].item<float>() ==
          doctest::Approx(has_signs ? 0.55e-6 : 0.325e-6));
  }
  CHECK(code_values(true)[0] == doctest::Approx(-(1 - 0.45 / 64)));
}

TEST_CASE("what begins as zeros is zeros") {
  for (const bool has_signs : {true, false}) {
    const BlockCodes codes(has_signs, at::kCPU);
    const Coded coded = codes.zeros(at::zeros({3, 100}), 0);
    CHECK(coded.scales.numel() == 2);  // 300 numbers
    CHECK((at::equal(codes.decode(coded, 0), at::zeros({3, 100}))));
    coded.scales.fill_(1);
    CHECK((at::equal(codes.decode(coded, 0), at::zeros({3, 100}))));
    CHECK((at::equal(there_and_back(at::zeros({3, 100}), has_signs), at::zeros({3, 100}))));
  }
}

TEST_CASE("a number comes back within half the distance of the values about it") {
  const at::Tensor values = drawn({5, 301});
  const at::Tensor errors = (there_and_back(values, true) - values).abs().flatten();
  std::int64_t begin = 0;
  for (const at::Tensor& block : values.flatten().split(256)) {
    // In the last decade 0.9 / 64 lies between two values, and in each lower one less; -1 has none.
    const double most = block.abs().max().item<double>() * 0.9 / 64;
    CHECK(errors.narrow(0, begin, block.numel()).max().item<double>() <= most);
    begin += 256;
  }
  const at::Tensor of_squares = (there_and_back(values.square(), false) - values.square()).abs();
  CHECK((of_squares / values.square().max()).max().item<double>() <= 0.9 / 128);
}

TEST_CASE("a piece is coded as in its tensor where it begins with a block") {
  const at::Tensor whole = drawn({4 * 256}), all = there_and_back(whole, true);
  CHECK((at::equal(there_and_back(whole.narrow(0, 256, 512), true, 256), all.narrow(0, 256, 512))));
  // One that begins within a block has the rest of that block for itself.
  const at::Tensor piece = whole.narrow(0, 200, 300);
  const at::Tensor cut = there_and_back(piece, true, 200);
  CHECK((at::equal(cut.narrow(0, 0, 56), there_and_back(piece.narrow(0, 0, 56), true))));
  CHECK((at::equal(cut.narrow(0, 56, 244), there_and_back(piece.narrow(0, 56, 244), true))));
}

TEST_CASE("the memory layout of the numbers changes nothing") {
  const at::Tensor values = drawn({4, 8, 5, 5});
  const at::Tensor turned = values.contiguous(at::MemoryFormat::ChannelsLast);
  CHECK((at::equal(there_and_back(values, true), there_and_back(turned, true))));
}

TEST_CASE("without signs what is above 0 stays so, however small") {
  const at::Tensor values = at::tensor({1.0F, 1e-20F, 0.0F});
  const at::Tensor back = there_and_back(values, false);
  CHECK(back[0].item<float>() == 1);
  CHECK(back[1].item<float>() == doctest::Approx(0.325e-6));
  CHECK(back[2].item<float>() == 0);
}

}  // namespace
