// PowerSGD: ranks all-reduce two low-rank factors of each gradient matrix.
//
// Vogels, Karimireddy and Jaggi, "PowerSGD: Practical low-rank gradient compression for distributed
// optimization", NeurIPS 2019, algorithms 1 and 2, with the choices of PyTorch's powerSGD_hook:
//   M_i = gradient of rank i + error of rank i        Q = orthonormal(Q of the step before)
//   P = orthonormal(sum over i of M_i Q)              Q = mean over i of M_i^T P
//   gradient = P Q^T                                  error of rank i = M_i - P Q^T
// The first Q is drawn from (seed, parameter name). Vectors, and matrices whose factors would be
// more than half as large, are summed uncompressed in the message of the first factors.
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <utility>

#include "lib/core/distributions.h"
#include "lib/core/text/hash.h"
#include "lib/parallel/compress/bucket.h"
#include "lib/parallel/compress/stepped.h"
#include "lib/units/flops.h"

namespace scaletrain::parallel {
namespace {

constexpr std::int64_t kLeastGain = 2;

struct Matrix {
  Slot slot;
  std::int64_t rank;
  Stepped error, q;  // [rows, columns], [columns, rank]

  std::int64_t p_elements() const { return slot.rows * rank; }
  std::int64_t q_elements() const { return slot.columns() * rank; }
};

std::int64_t factor_rank(const Slot& slot, std::int64_t rank) {
  return std::min({slot.rows, slot.columns(), rank});
}

bool is_worth_it(const Slot& slot, std::int64_t rank) {
  if (!slot.is_matrix()) return false;
  const std::int64_t factors = (slot.rows + slot.columns()) * factor_rank(slot, rank);
  return factors * kLeastGain < slot.elements;
}

at::Tensor drawn(std::uint64_t seed, const std::string& name, std::int64_t rows,
                 std::int64_t columns) {
  core::Philox draw(seed, core::DrawPurpose::kFactors, 0, core::xxh3_64(name));
  at::Tensor result = at::empty({rows, columns}, at::kFloat);
  auto* const values = result.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    values[i] = static_cast<float>(core::normal(draw));
  }
  return result;
}

at::Tensor orthonormal(const at::Tensor& columns) {
  return std::get<0>(at::linalg_qr(columns, "reduced"));
}

class PowerSgd : public BucketExchange {
 public:
  PowerSgd(Wire& wire, std::vector<Slot> slots, at::Device device, std::int64_t rank,
           std::uint64_t seed)
      : wire_(wire), options_(at::TensorOptions(at::kFloat).device(device)) {
    for (Slot& slot : slots) {
      if (!is_worth_it(slot, rank)) {
        plain_elements_ += slot.elements;
        plain_.push_back(std::move(slot));
        continue;
      }
      Matrix matrix{.slot = std::move(slot), .rank = 0, .error = {}, .q = {}};
      const Slot& its = matrix.slot;
      matrix.rank = factor_rank(its, rank);
      matrix.error = Stepped::zeros({its.rows, its.columns()}, device);
      matrix.q = Stepped::zeros({its.columns(), matrix.rank}, device);
      matrix.q.now.copy_(drawn(seed, its.name, its.columns(), matrix.rank));
      p_elements_ += matrix.p_elements();
      q_elements_ += matrix.q_elements();
      matrices_.push_back(std::move(matrix));
    }
  }

  void begin(const at::Tensor& flat) override {
    const units::FlopPassScope apart(units::FlopPass::kNone);
    flat_ = flat;
    message_ = at::empty({plain_elements_ + p_elements_}, options_);
    std::int64_t begin = 0;
    for (const Slot& slot : plain_) next(begin, slot.elements).copy_(gradient(slot));
    for (const Matrix& matrix : matrices_) {
      const at::Tensor& sent = matrix.error.next;
      sent.copy_(gradient(matrix.slot).view(sent.sizes())).add_(matrix.error.now);
      at::Tensor p = next(begin, matrix.p_elements()).view({matrix.slot.rows, matrix.rank});
      at::mm_out(p, sent, orthonormal(matrix.q.now));
    }
    work_ = wire_.all_reduce(message_);
  }

  void go_on() override {
    const units::FlopPassScope apart(units::FlopPass::kNone);
    work_->wait();
    std::int64_t begin = 0;
    for (const Slot& slot : plain_) {
      gradient(slot).copy_(next(begin, slot.elements).div_(wire_.ranks()));
    }
    p_.clear();
    for (const Matrix& matrix : matrices_) {
      p_.push_back(
          orthonormal(next(begin, matrix.p_elements()).view({matrix.slot.rows, matrix.rank})));
    }
    if (matrices_.empty()) return;
    message_ = at::empty({q_elements_}, options_);
    begin = 0;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const Matrix& matrix = matrices_[i];
      at::Tensor q = next(begin, matrix.q_elements()).view(matrix.q.now.sizes());
      at::mm_out(q, matrix.error.next.t(), p_[i]);
    }
    work_ = wire_.all_reduce(message_);
  }

  void finish() override {
    if (matrices_.empty()) return;
    const units::FlopPassScope apart(units::FlopPass::kNone);
    work_->wait();
    message_.div_(wire_.ranks());
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const Matrix& matrix = matrices_[i];
      matrix.q.next.copy_(next(begin, matrix.q_elements()).view(matrix.q.now.sizes()));
      const at::Tensor result = gradient(matrix.slot).view(matrix.error.now.sizes());
      result.copy_(at::mm(p_[i], matrix.q.next.t()));
      matrix.error.next.sub_(result);
    }
    message_.reset();
  }

  void end_step(const at::Tensor& found_inf) override {
    for (const Matrix& matrix : matrices_) {
      matrix.error.end_step(found_inf);
      matrix.q.end_step(found_inf);
    }
  }

  units::Shards state() override {
    units::Shards result;
    for (const Matrix& matrix : matrices_) {
      result.emplace("error/" + matrix.slot.name, matrix.slot.residual(matrix.error.now));
      result.emplace("q/" + matrix.slot.name, units::full_shard(matrix.q.now));
    }
    return result;
  }

 private:
  at::Tensor gradient(const Slot& slot) const { return flat_.narrow(0, slot.begin, slot.elements); }
  // Takes `elements` elements of the message from `begin` on and moves `begin` to their end.
  at::Tensor next(std::int64_t& begin, std::int64_t elements) const {
    return message_.narrow(0, std::exchange(begin, begin + elements), elements);
  }

  Wire& wire_;
  const at::TensorOptions options_;
  std::vector<Slot> plain_;
  std::vector<Matrix> matrices_;
  std::int64_t plain_elements_ = 0, p_elements_ = 0, q_elements_ = 0;
  at::Tensor flat_, message_;
  std::vector<at::Tensor> p_;
  Wire::Work work_;
};

}  // namespace

BucketBytes power_sgd_bytes(const std::vector<Slot>& slots, std::int64_t rank) {
  std::int64_t first = 0, second = 0, unsent = 0;  // elements
  for (const Slot& slot : slots) {
    if (!is_worth_it(slot, rank)) {
      first += slot.elements;
      continue;
    }
    const std::int64_t columns = factor_rank(slot, rank);
    first += slot.rows * columns;
    second += slot.columns() * columns;
    unsent += slot.elements + slot.columns() * columns;
  }
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  return {.reduces = second > 0 ? 2 : 1,
          .reduced = kBytes * (first + second),
          .unsent = 2 * kBytes * unsent};
}

std::unique_ptr<BucketExchange> make_power_sgd(Wire& wire, std::vector<Slot> slots,
                                               at::Device device, std::int64_t rank,
                                               std::uint64_t seed) {
  return std::make_unique<PowerSgd>(wire, std::move(slots), device, rank, seed);
}

}  // namespace scaletrain::parallel
