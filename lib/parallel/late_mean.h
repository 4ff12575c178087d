// Gradients that are not exchanged during backward: their mean over a group's ranks, bucket by
// bucket, behind a step's last backward.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/group.h"
#include "lib/parallel/compress/compression.h"
#include "lib/parallel/layout.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

class LateMean {
 public:
  // Of `parameters`: the sum over `group`, which outlives it, divided by `count`, a multiple of its
  // ranks. `name`, of its collectives, is a literal. `compression`, without buckets yet, is of
  // `group`; null: as they are.
  LateMean(std::vector<units::NamedParameter> parameters, dist::Group& group, int count,
           const char* name, std::unique_ptr<Compression> compression = nullptr);

  const std::vector<units::NamedParameter>& parameters() const { return parameters_; }
  void zero_grad();
  void begin_step(std::int64_t step);
  void end_step(const at::Tensor& found_inf);
  // Every rank of the group calls it. What has no gradient here has one of zeros then.
  void exchange();
  // What this rank keeps of them for the next step, by name; its own tensors.
  std::map<std::string, at::Tensor> state();
  // Bytes of gradients that this rank has given to exchanges so far.
  std::int64_t exchanged_bytes() const {
    return exchanged_bytes_ + (compression_ ? compression_->bytes() : 0);
  }

 private:
  std::vector<units::NamedParameter> parameters_;
  dist::Group& group_;
  int divisor_;  // of gradients, before they are added up; what compresses divides by the ranks
  const char* name_;
  BucketLayout buckets_;
  std::unique_ptr<Compression> compression_;
  std::int64_t exchanged_bytes_ = 0;
};

}  // namespace scaletrain::parallel
