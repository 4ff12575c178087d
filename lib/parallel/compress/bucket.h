// How the gradients of one bucket become the mean over the ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/parallel/compress/wire.h"
#include "lib/recipe/sections/compress.h"

namespace scaletrain::parallel {

// A gradient's place in its bucket.
struct Slot {
  std::string name;  // the parameter's
  std::int64_t begin = 0, elements = 0;
  std::int64_t rows = 0;  // of a matrix, whose other dimensions are its columns; 0: a vector

  bool is_matrix() const { return rows > 0; }
  std::int64_t columns() const { return elements / rows; }
};

// A step calls begin(), go_on() and finish(), each once and for all buckets in the same order on
// all ranks; other buckets' calls may lie between. Collectives are under way from one to the next.
class BucketExchange {
 public:
  virtual ~BucketExchange() = default;

  // `flat`, [elements]: this rank's gradients of all slots, which finish() replaces.
  virtual void begin(const at::Tensor& flat) = 0;
  virtual void go_on() {}
  virtual void finish() = 0;

  // What begin() to finish() have changed of the state counts where `found_inf`, a 0-dim tensor, is
  // 0, and is taken back otherwise.
  virtual void end_step(const at::Tensor& /*found_inf*/) {}
  // Of this rank, by name; its own tensors.
  virtual std::map<std::string, at::Tensor> state() { return {}; }
};

// Sums in the gradients' own type, or as `type`: divided by the ranks before they are added, so
// that halves do not overflow, as PyTorch's bf16_compress_hook and fp16_compress_hook do.
std::unique_ptr<BucketExchange> make_plain(Wire& wire);
std::unique_ptr<BucketExchange> make_cast(Wire& wire, at::ScalarType type);
// lib/parallel/compress/power_sgd.cpp, `device`: the gradients'.
std::unique_ptr<BucketExchange> make_power_sgd(Wire& wire, std::vector<Slot> slots,
                                               at::Device device, std::int64_t rank,
                                               std::uint64_t seed);
// lib/parallel/compress/quantised.cpp
std::unique_ptr<BucketExchange> make_one_bit(Wire& wire, std::vector<Slot> slots,
                                             at::Device device);
std::unique_ptr<BucketExchange> make_int8(Wire& wire, std::vector<Slot> slots, at::Device device);

// Of those that only round; nullopt: another.
std::optional<at::ScalarType> cast_type(const recipe::Compress& compress);
// What the recipe asks for.
std::unique_ptr<BucketExchange> make_bucket(const recipe::Compress& compress, std::uint64_t seed,
                                            Wire& wire, std::vector<Slot> slots, at::Device device);

// What a rank gives to collectives in a step, and what it keeps for the next one: before a step and
// behind it.
struct BucketBytes {
  std::int64_t reduces = 0, reduced = 0;   // all-reduces, and bytes of them
  std::int64_t gathers = 0, gathered = 0;  // all-gathers, and bytes of its own
  std::int64_t unsent = 0;
};
BucketBytes power_sgd_bytes(const std::vector<Slot>& slots, std::int64_t rank);
BucketBytes one_bit_bytes(const std::vector<Slot>& slots);
BucketBytes int8_bytes(const std::vector<Slot>& slots);
// Of what the recipe asks for, `elements` in all.
BucketBytes bucket_bytes(const recipe::Compress& compress, const std::vector<Slot>& slots,
                         std::int64_t elements);

}  // namespace scaletrain::parallel
