// Averages gradients over a group after a step's last backward, bucket by bucket, instead of during
// backward.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/core/plan/gradient_memory.h"
#include "lib/dist/group.h"
#include "lib/parallel/compress/compression.h"
#include "lib/parallel/layout.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

class LateMean {
 public:
  // Sums gradients of `parameters` over `group` and divides them by `count`, a multiple of its
  // size. `group` must outlive this object; `name` of the collectives must be a literal.
  // `compression` must belong to `group` and have no buckets yet; null: plain all-reduce.
  LateMean(std::vector<units::NamedParameter> parameters, dist::Group& group, int count,
           const char* name, std::unique_ptr<Compression> compression = nullptr);

  const std::vector<units::NamedParameter>& parameters() const { return parameters_; }
  void zero_grad();
  void begin_step(std::int64_t step);
  void end_step(const at::Tensor& found_inf);
  // Collective. A parameter without a gradient on this rank gets zeros.
  void exchange();
  // Rank-local state of the compression by name; not copies.
  units::Shards state();
  core::GradientPeak gradient_peak() const;
  // Bytes of gradients that this rank has sent so far.
  std::int64_t exchanged_bytes() const {
    return exchanged_bytes_ + (compression_ ? compression_->bytes() : 0);
  }

 private:
  std::vector<units::NamedParameter> parameters_;
  dist::Group& group_;
  int divisor_;  // divides gradients before the sum; compression divides by ranks itself
  const char* name_;
  BucketLayout buckets_;
  std::unique_ptr<Compression> compression_;
  std::int64_t exchanged_bytes_ = 0;
};

}  // namespace scaletrain::parallel
