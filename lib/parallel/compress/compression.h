// Compressed exchanges of all gradients that a rank has, bucket by bucket, which begin with some
// steps of plain ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/dist/group.h"
#include "lib/parallel/compress/hook.h"
#include "lib/recipe/sections/compress.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

// Where the gradients of these `parameters`, by number, lie one behind the other.
std::vector<Slot> slots_of(const std::vector<units::NamedParameter>& parameters,
                           const std::vector<std::int64_t>& numbers);

class Compression {
 public:
  Compression(const Compression&) = delete;  // the exchanges know its wire
  Compression& operator=(const Compression&) = delete;
  // Between the ranks of `group`; `seed`: of what it draws.
  Compression(const recipe::Compress& compress, std::uint64_t seed, const dist::Group& group);

  // One bucket more.
  void add(std::vector<Slot> slots);

  // Before a step, number `step` of the training (from 0): which exchanges it has.
  void begin_step(std::int64_t step);
  const StepExchanges& exchanges() const { return exchanges_; }
  // Behind its update, which was left out where `found_inf`, a 0-dim tensor, is not 0.
  void end_step(const at::Tensor& found_inf);

  // That this rank has given to exchanges so far.
  std::int64_t bytes() const { return wire_.bytes(); }
  // What this rank keeps for the next step, by name; its own tensors.
  std::map<std::string, at::Tensor> state();

 private:
  recipe::Compress compress_;
  std::uint64_t seed_;
  at::Device device_;
  Wire wire_;
  BucketExchanges plain_, compressed_;
  StepExchanges exchanges_;
};

// Null where nothing is compressed, as the recipe does not say so or the group is one rank.
std::unique_ptr<Compression> make_compression(const std::optional<recipe::Compress>& compress,
                                              std::uint64_t seed, const dist::Group& group);

}  // namespace scaletrain::parallel
