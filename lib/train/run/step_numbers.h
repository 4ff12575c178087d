// Numbers of a step that the device computes, as named fields of one vector of doubles, so that a
// single copy transfers all of them to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace scaletrain::train {

// `Field` is a tensor on the device, a span of values on the host, or the number of values.
template <class Field>
struct StepNumbers {
  Field votes{};       // VoteExchange::kSize sums over the ranks
  Field grad_norm{};   // one: global gradient norm before clipping
  Field statistics{};  // nn::Model::statistics(); empty for a model without any
  Field loss_scale{};  // one: the scale of this step's loss; empty without loss scaling
  Field spikes{};      // one: spikes_among(); empty without /anomaly

  // Calls `visit` with each field, in the order in which the vector holds them.
  template <class Numbers, class Visit>
  static void for_each(Numbers& numbers, const Visit& visit) {
    visit(numbers.votes);
    visit(numbers.grad_norm);
    visit(numbers.statistics);
    visit(numbers.loss_scale);
    visit(numbers.spikes);
  }
};

// Concatenates the fields into one dimension of doubles; an undefined tensor is an empty field.
at::Tensor pack(const StepNumbers<at::Tensor>& numbers);

// Returns the number of values that each field has in pack(numbers).
StepNumbers<std::int64_t> sizes_of(const StepNumbers<at::Tensor>& numbers);

// Divides a vector that pack() made into its fields, which are views of `values`.
StepNumbers<std::span<const double>> unpack(std::span<const double> values,
                                            const StepNumbers<std::int64_t>& sizes);

}  // namespace scaletrain::train
