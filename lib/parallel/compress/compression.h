// Gradient compression: communicates all gradients of a rank bucket by bucket; the first `warmup`
// steps use plain all-reduce.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/dist/group.h"
#include "lib/parallel/compress/hook.h"
#include "lib/recipe/sections/parallel/compress.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

// Slots of the `parameters` with these numbers, laid out one after the other in a bucket.
std::vector<Slot> slots_of(const std::vector<units::NamedParameter>& parameters,
                           const std::vector<std::int64_t>& numbers);

class Compression {
 public:
  Compression(const Compression&) = delete;  // bucket exchanges refer to wire_
  Compression& operator=(const Compression&) = delete;
  // Communicates in `group`; `seed` is for the random initial factors of PowerSGD.
  Compression(const recipe::Compress& compress, std::uint64_t seed, const dist::Group& group);

  // Adds a bucket.
  void add(std::vector<Slot> slots);

  // Call before a step. `step`, from 0, selects plain or compressed communication.
  void begin_step(std::int64_t step);
  const StepExchanges& exchanges() const { return exchanges_; }
  // Call after the update, which was skipped if `found_inf`, a 0-dim tensor, is not 0.
  void end_step(const at::Tensor& found_inf);

  // Bytes that this rank has sent so far.
  std::int64_t bytes() const { return wire_.bytes(); }
  // Rank-local state by name (error-feedback residuals, factors of PowerSGD); not copies.
  units::Shards state();

 private:
  recipe::Compress compress_;
  std::uint64_t seed_;
  at::Device device_;
  Wire wire_;
  BucketExchanges plain_, compressed_;
  StepExchanges exchanges_;
};

// Returns null if the recipe does not compress gradients or the group is a single rank.
std::unique_ptr<Compression> make_compression(const std::optional<recipe::Compress>& compress,
                                              std::uint64_t seed, const dist::Group& group);

}  // namespace scaletrain::parallel
