#include "lib/optim/block_kernels.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/cpu.h"
#include "lib/optim/block_codes.h"

namespace scaletrain::optim {
namespace {

// Numbers of many sizes, a zero among them.
at::Tensor wide(std::int64_t count) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{11});
  at::Tensor values = at::randn({count}, generator) * at::pow(10, at::randn({count}, generator));
  values[count / 2] = 0;
  return values;
}

struct Averages {
  Coded average, squares;
};

// What AdamW's kernel makes of gradients whose averages they become.
Averages kernel_codes(at::Tensor gradients) {
  at::Tensor parameter = at::zeros_like(gradients);
  Averages result{BlockCodes(true, at::kCPU).zeros(gradients, 0),
                  BlockCodes(false, at::kCPU).zeros(gradients, 0)};
  const auto block = [](const Coded& coded) {
    return CodedBlock{coded.codes.mutable_data_ptr<std::uint8_t>(),
                      coded.scales.mutable_data_ptr<float>()};
  };
  adamw_block(
      {.beta1 = 0, .beta2 = 0, .eps = 1, .keep = 1, .rate = 0, .correction = 1},
      {gradients.numel(), parameter.mutable_data_ptr<float>(), gradients.const_data_ptr<float>()},
      block(result.average), block(result.squares));
  return result;
}

void check_same(const Coded& coded, const at::Tensor& values, bool has_signs) {
  const BlockCodes codes(has_signs, at::kCPU);
  const Coded expected = codes.zeros(values, 0);
  codes.encode(values, expected, 0);
  CHECK((at::equal(coded.codes, expected.codes)));
  CHECK((at::equal(coded.scales, expected.scales)));
}

TEST_CASE("a kernel's codes are those of BlockCodes, of whole blocks and of parts") {
  if (!core::has_avx2()) return;
  for (const std::int64_t count : {256, 255, 100, 7, 1}) {
    CAPTURE(count);
    const at::Tensor gradients = wide(count);
    const Averages averages = kernel_codes(gradients);
    check_same(averages.average, gradients, true);
    check_same(averages.squares, gradients * gradients, false);
  }
}

TEST_CASE("what lies between two values becomes the nearer one, in every decade") {
  if (!core::has_avx2()) return;
  for (const double side : {0.999, 1.001}) {
    for (const double sign : {1.0, -1.0}) {
      const std::vector<float> sorted = code_values(true);
      const at::Tensor sizes = at::tensor(std::vector<float>(sorted.begin() + 127, sorted.end()));
      const at::Tensor between = (sizes.slice(0, 0, -1) + sizes.slice(0, 1)) / 2 * side;
      const at::Tensor values = at::cat({at::tensor({1.0F}), between * sign});
      check_same(kernel_codes(values).average, values, true);
    }
    const std::vector<float> sorted = code_values(false);
    const at::Tensor sizes = at::tensor(sorted);
    const at::Tensor between = (sizes.slice(0, 0, -1) + sizes.slice(0, 1)) / 2 * side;
    const at::Tensor gradients = at::cat({at::tensor({1.0F}), between.sqrt()});
    check_same(kernel_codes(gradients).squares, gradients * gradients, false);
  }
}

}  // namespace
}  // namespace scaletrain::optim
