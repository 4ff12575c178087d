#include "lib/optim/block_kernels.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

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

// A block's memory before a step: any codes, and numbers of many sizes.
struct Memory {
  at::Tensor parameter, gradient, average, squares, scales;

  explicit Memory(std::int64_t count)
      : parameter(wide(count)),
        gradient(wide(count).flip(0)),
        average(codes(count, 3)),
        squares(codes(count, 5)),
        scales(at::tensor({0.7F, 3e-4F})) {}

  static at::Tensor codes(std::int64_t count, std::uint64_t seed) {
    return at::randint(0, 256, {count}, at::make_generator<at::CPUGeneratorImpl>(seed),
                       at::TensorOptions(at::kByte));
  }
  BlockStep step() const {
    return {parameter.numel(), parameter.mutable_data_ptr<float>(),
            gradient.const_data_ptr<float>()};
  }
  CodedBlock block(const at::Tensor& codes, int scale) const {
    return {codes.mutable_data_ptr<std::uint8_t>(), scales.mutable_data_ptr<float>() + scale};
  }
};

void check_same_bits(const Memory& one, const Memory& other) {
  const auto bits = [](const at::Tensor& floats) { return floats.view(at::kInt); };
  CHECK((at::equal(bits(one.parameter), bits(other.parameter))));
  CHECK((at::equal(bits(one.scales), bits(other.scales))));
  CHECK((at::equal(one.average, other.average)));
  CHECK((at::equal(one.squares, other.squares)));
}

// Three steps of both kernels by each instruction set.
void check_instruction_sets(std::int64_t count, const std::vector<float>& odd) {
  const Memory narrow(count), broad(count);
  for (std::size_t i = 0; i < odd.size(); ++i) {
    for (const Memory* const memory : {&narrow, &broad}) {
      memory->gradient[static_cast<std::int64_t>(7 * i)] = odd[i];
    }
  }
  const AdamWNumbers adamw{
      .beta1 = 0.9F, .beta2 = 0.999F, .eps = 1e-8F, .keep = 0.99F, .rate = 0.1F, .correction = 3};
  const LionNumbers lion{.beta1 = 0.9F, .beta2 = 0.99F, .keep = 0.99F, .rate = 0.1F};
  for (int step = 0; step < 3; ++step) {
    avx2_adamw_block(adamw, narrow.step(), narrow.block(narrow.average, 0),
                     narrow.block(narrow.squares, 1));
    avx512_adamw_block(adamw, broad.step(), broad.block(broad.average, 0),
                       broad.block(broad.squares, 1));
    check_same_bits(narrow, broad);
    avx2_lion_block(lion, narrow.step(), narrow.block(narrow.average, 0));
    avx512_lion_block(lion, broad.step(), broad.block(broad.average, 0));
    check_same_bits(narrow, broad);
  }
}

TEST_CASE("AVX-512 and AVX2 give the same bits, of whole blocks and of parts") {
  if (!core::has_avx512()) return;
  for (const std::int64_t count : {256, 255, 100, 17, 1}) {
    CAPTURE(count);
    check_instruction_sets(count, {});
  }
}

TEST_CASE("a part of a block has nothing of the block before it") {
  if (!core::has_avx2()) return;
  const AdamWNumbers adamw{
      .beta1 = 0.9F, .beta2 = 0.999F, .eps = 1e-8F, .keep = 0.99F, .rate = 0.1F, .correction = 3};
  const LionNumbers lion{.beta1 = 0.9F, .beta2 = 0.99F, .keep = 0.99F, .rate = 0.1F};
  // What a step leaves on the stack is the next one's that follows at once.
  const auto part_after = [&](float scale) {
    const Memory before(256);
    Memory part(3);
    before.scales.fill_(scale);
    const BlockStep whole = before.step(), step = part.step();
    const CodedBlock of_before = before.block(before.average, 0);
    const CodedBlock squares_before = before.block(before.squares, 1);
    const CodedBlock average = part.block(part.average, 0), squares = part.block(part.squares, 1);
    avx2_adamw_block(adamw, whole, of_before, squares_before);
    avx2_adamw_block(adamw, step, average, squares);
    avx2_lion_block(lion, whole, of_before);
    avx2_lion_block(lion, step, average);
    return part;
  };
  check_same_bits(part_after(1e6F), part_after(0));
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

TEST_CASE("AVX-512 and AVX2 give the same bits of numbers that are tiny, none or infinite") {
  if (!core::has_avx512()) return;
  const float none = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  check_instruction_sets(256, {1e-30F, -1e-38F, 1e-42F, -0.0F});
  check_instruction_sets(256, {none, -none, 1});
  check_instruction_sets(256, {infinite, -infinite, 1});
  // A block of tiny numbers alone, whose largest has no reciprocal.
  for (const auto kernel : {avx2_adamw_block, avx512_adamw_block}) {
    Memory memory(256);
    memory.gradient.fill_(1e-42F);
    memory.scales.zero_();
    kernel({.beta1 = 0, .beta2 = 0, .eps = 1, .keep = 1, .rate = 0, .correction = 1}, memory.step(),
           memory.block(memory.average, 0), memory.block(memory.squares, 1));
    CHECK((at::equal(memory.average, at::full({256}, 255, at::kByte))));  // 1 of the largest
    CHECK((at::equal(memory.squares, at::zeros({256}, at::kByte))));      // their squares are 0
  }
}

}  // namespace
}  // namespace scaletrain::optim
