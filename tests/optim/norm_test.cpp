#include "lib/optim/norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/count_reads.h"

namespace {

using namespace scaletrain;

at::Tensor drawn(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

double reference(const std::vector<at::Tensor>& tensors) {
  double sum = 0;
  for (const at::Tensor& tensor : tensors) {
    sum += tensor.to(at::kDouble).square().sum().item<double>();
  }
  return sum;
}

double norm_of(const std::vector<at::Tensor>& tensors) {
  const at::Tensor result = optim::squared_norm(tensors);
  CHECK((result.scalar_type() == at::kDouble));
  CHECK(result.dim() == 0);
  return result.item<double>();
}

TEST_CASE("squares are added up in doubles, of any length") {
  CHECK(norm_of({}) == 0);
  CHECK(norm_of({at::empty({0})}) == 0);
  CHECK(norm_of({at::full({2, 2}, 2.0), at::full({}, 3.0)}) == 25);  // 4 * 4 + 9
  for (const std::int64_t length : {1, 31, 32, 33, 100, 32767, 32768, 32769, 100000}) {
    CAPTURE(length);
    const at::Tensor tensor = drawn({length}, static_cast<std::uint64_t>(length));
    CHECK(norm_of({tensor}) == doctest::Approx(reference({tensor})).epsilon(1e-14));
  }
}

TEST_CASE("what single precision would lose or overflow is kept") {
  // 2^24 ones and a half: in fp32 the sum stops growing at 2^24.
  CHECK(norm_of({at::ones({(1 << 24) + 64}), at::full({1}, 0.5)}) == (1 << 24) + 64.25);
  CHECK(norm_of({at::full({2}, 1e30)}) == doctest::Approx(2e60));
  CHECK(norm_of({at::full({2}, 1e-30)}) == doctest::Approx(2e-60));
  CHECK(std::isnan(norm_of({at::ones({64}), at::full({40}, std::nan(""))})));
  CHECK(std::isinf(norm_of({at::full({1}, HUGE_VAL)})));
}

TEST_CASE("any type and layout counts, each element once") {
  const at::Tensor image = drawn({4, 3, 5, 5}, 1);
  const at::Tensor channels_last = image.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor strided = drawn({6, 40}, 2).narrow(1, 3, 20);
  const at::Tensor half = drawn({50}, 3).to(at::kBFloat16), wide = drawn({50}, 4).to(at::kDouble);
  const std::vector<at::Tensor> all = {channels_last, strided, strided.t(), half, wide};
  CHECK(norm_of(all) == doctest::Approx(reference(all)).epsilon(1e-14));
}

TEST_CASE("how gradients are cut changes no more than a double's last bits") {
  const at::Tensor whole = drawn({100003}, 5);
  std::vector<at::Tensor> pieces;
  for (std::int64_t begin = 0; begin < whole.numel(); begin += 7777) {
    pieces.push_back(whole.narrow(0, begin, std::min<std::int64_t>(7777, whole.numel() - begin)));
  }
  CHECK(norm_of(pieces) == doctest::Approx(norm_of({whole})).epsilon(1e-14));
}

TEST_CASE("the number of threads changes no bit, and nothing is read") {
  const std::vector<at::Tensor> tensors = {drawn({1 << 20}, 6), drawn({5000}, 7)};
  const int threads = at::get_num_threads();
  std::vector<double> results;
  for (const int count : {1, 2, 5}) {
    at::set_num_threads(count);
    results.push_back(norm_of(tensors));
  }
  at::set_num_threads(threads);
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
  CHECK(testing::count_reads([&] { (void)optim::squared_norm(tensors); }) == 0);
}

}  // namespace
