// Communication of one gradient bucket: replaces local gradients by their mean over the ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/parallel/compress/wire.h"
#include "lib/recipe/sections/parallel/compress.h"
#include "lib/units/shard.h"

namespace scaletrain::parallel {

// Position of a parameter's gradient in its flat bucket.
struct Slot {
  std::string name;  // the parameter's name
  std::int64_t begin = 0, elements = 0;
  std::int64_t rows = 0;    // first dimension of a matrix, the others are its columns; 0: a vector
  units::Shard shard = {};  // shard description of the parameter, without a tensor

  bool is_matrix() const { return rows > 0; }
  std::int64_t columns() const { return elements / rows; }
  // Describes the error-feedback residual of the gradient.
  units::Shard residual(at::Tensor tensor) const {
    units::Shard result = shard;
    result.tensor = std::move(tensor);
    return result;
  }
};

// Each step calls begin(), go_on() and finish() once, in the same order of buckets on all ranks;
// calls of other buckets may come between. Collectives run between one call and the next.
class BucketExchange {
 public:
  virtual ~BucketExchange() = default;

  // `flat`, [elements]: this rank's gradients of all slots; finish() overwrites it with the mean.
  virtual void begin(const at::Tensor& flat) = 0;
  virtual void go_on() {}
  virtual void finish() = 0;

  // Commits the state that begin() to finish() have changed if `found_inf`, a 0-dim tensor, is 0,
  // and rolls it back otherwise.
  virtual void end_step(const at::Tensor& /*found_inf*/) {}
  // Rank-local state by name, such as error-feedback residuals; not copies.
  virtual units::Shards state() { return {}; }
};

// All-reduce in the gradients' dtype, or cast to `type`: gradients are divided by the number of
// ranks before the sum, so that fp16 does not overflow, as in PyTorch's fp16_compress_hook.
std::unique_ptr<BucketExchange> make_plain(Wire& wire);
std::unique_ptr<BucketExchange> make_cast(Wire& wire, at::ScalarType type);
// PowerSGD, lib/parallel/compress/power_sgd.cpp; `device` of the gradients.
std::unique_ptr<BucketExchange> make_power_sgd(Wire& wire, std::vector<Slot> slots,
                                               at::Device device, std::int64_t rank,
                                               std::uint64_t seed);
// 1-bit SGD and int8 with error feedback, lib/parallel/compress/quantised.cpp.
std::unique_ptr<BucketExchange> make_one_bit(Wire& wire, std::vector<Slot> slots,
                                             at::Device device);
std::unique_ptr<BucketExchange> make_int8(Wire& wire, std::vector<Slot> slots, at::Device device);

// Dtype of a method that only casts (bf16, fp16); nullopt for the other methods.
std::optional<at::ScalarType> cast_type(const recipe::Compress& compress);
// Makes the exchange that `compress` names.
std::unique_ptr<BucketExchange> make_bucket(const recipe::Compress& compress, std::uint64_t seed,
                                            Wire& wire, std::vector<Slot> slots, at::Device device);

// Bytes that a rank sends in a step, and bytes of its rank-local state, such as error-feedback
// residuals (two copies: before and after the step).
struct BucketBytes {
  std::int64_t reduces = 0, reduced = 0;   // number of all-reduces, and their bytes
  std::int64_t gathers = 0, gathered = 0;  // number of all-gathers, and this rank's bytes in them
  std::int64_t unsent = 0;
};
BucketBytes power_sgd_bytes(const std::vector<Slot>& slots, std::int64_t rank);
BucketBytes one_bit_bytes(const std::vector<Slot>& slots);
BucketBytes int8_bytes(const std::vector<Slot>& slots);
// Bytes of the method that `compress` names; `elements`: of all slots together.
BucketBytes bucket_bytes(const recipe::Compress& compress, const std::vector<Slot>& slots,
                         std::int64_t elements);

}  // namespace scaletrain::parallel
