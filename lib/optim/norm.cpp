#include "lib/optim/norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/units/parallel.h"

namespace scaletrain::optim {
namespace {

// ATen's norm with dtype=double converts the whole tensor first: 15 times the time of its norm in
// fp32 on a CPU. This one takes about as long as that (docs/lab/performance.md).
using FourFloats = float __attribute__((vector_size(16)));
using FourDoubles = double __attribute__((vector_size(32)));
struct Lane {
  FourDoubles sum;
};
constexpr std::size_t kLanes = 8;  // additions under way at a time
constexpr std::int64_t kStep = 4 * kLanes;

inline __attribute__((always_inline)) void add_four(Lane& lane, const float* values) {
  FourFloats floats;
  std::memcpy(&floats, values, sizeof floats);
  const FourDoubles doubles = __builtin_convertvector(floats, FourDoubles);
  lane.sum += doubles * doubles;
}

template <std::size_t... kLane>
inline __attribute__((always_inline)) void add_step(std::array<Lane, kLanes>& lanes,
                                                    const float* values,
                                                    std::index_sequence<kLane...> /*all*/) {
  (add_four(lanes[kLane], values + 4 * kLane), ...);
}

inline __attribute__((always_inline)) double sum_squares(const float* values, std::int64_t count) {
  std::array<Lane, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    add_step(lanes, values + i, std::make_index_sequence<kLanes>());
  }
  double sum = 0;
  for (const Lane& lane : lanes) sum += lane.sum[0] + lane.sum[1] + lane.sum[2] + lane.sum[3];
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

// The square of a float is exact in double, so that with fused multiplications or without the bits
// are the same.
__attribute__((target("avx2"))) double avx2_sum_squares(const float* values, std::int64_t count) {
  return sum_squares(values, count);
}
double plain_sum_squares(const float* values, std::int64_t count) {
  return sum_squares(values, count);
}

struct Block {
  const float* values;
  std::int64_t count;
};

constexpr std::int64_t kBlock = 1 << 15;  // floats that a thread adds up at a time

void append_blocks(const at::Tensor& dense, std::vector<Block>& blocks) {
  const auto* const values = dense.const_data_ptr<float>();
  for (std::int64_t begin = 0; begin < dense.numel(); begin += kBlock) {
    blocks.push_back({values + begin, std::min(kBlock, dense.numel() - begin)});
  }
}

double squared_norm_on_cpu(const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> owners;  // keep the tensors that the blocks refer to
  std::vector<Block> blocks;
  double in_double = 0;
  owners.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) {
    if (gradient.scalar_type() == at::kDouble) {
      const at::Tensor flat = gradient.reshape({-1});
      in_double += at::dot(flat, flat).const_data_ptr<double>()[0];
      continue;
    }
    const at::Tensor floats =
        gradient.scalar_type() == at::kFloat ? gradient : gradient.to(at::kFloat);
    owners.push_back(floats.is_non_overlapping_and_dense() ? floats : floats.contiguous());
    append_blocks(owners.back(), blocks);
  }
  std::vector<double> sums(blocks.size());
  const auto add = __builtin_cpu_supports("avx2") ? avx2_sum_squares : plain_sum_squares;
  units::parallel_for(0, static_cast<std::int64_t>(blocks.size()), 4,
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) {
                          const auto at = static_cast<std::size_t>(i);
                          sums[at] = add(blocks[at].values, blocks[at].count);
                        }
                      });
  double sum = in_double;
  for (const double one : sums) sum += one;
  return sum;
}

}  // namespace

at::Tensor squared_norm(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  if (gradients.empty()) return at::zeros({}, at::kDouble);
  if (gradients.front().is_cpu()) {
    return at::empty({}, at::kDouble).fill_(squared_norm_on_cpu(gradients));
  }
  // The foreach kernel sums in the requested dtype.
  const at::Tensor norms = at::stack(at::_foreach_norm(gradients, 2, at::kDouble));
  return at::dot(norms, norms);
}

}  // namespace scaletrain::optim
