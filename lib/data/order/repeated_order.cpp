#include "lib/data/order/repeated_order.h"

#include <utility>

namespace scaletrain::data {

RepeatedOrder::RepeatedOrder(std::shared_ptr<const Order> once, std::int64_t repeats,
                             std::int64_t global_batch,
                             std::shared_ptr<const core::StepPlan> growing)
    : once_(std::move(once)),
      repeats_(repeats),
      global_batch_(global_batch),
      growing_(std::move(growing)) {}

SamplePlace RepeatedOrder::at(std::int64_t epoch, std::int64_t position) const {
  return once_->at(epoch, position_once(epoch, position));
}

SamplePlace RepeatedOrder::replacement(std::int64_t epoch, std::int64_t position,
                                       core::Philox& draws) const {
  return once_->replacement(epoch, position_once(epoch, position), draws);
}

// With K repeats, position t of an epoch shows sample t / K. A global batch has the next G
// positions, in the order 0, K, 2K, ..., then 1, K + 1, ..., up to K - 1, 2K - 1, ...
std::int64_t RepeatedOrder::position_once(std::int64_t epoch, std::int64_t position) const {
  std::int64_t batch = global_batch_, begin = position / batch * batch;
  if (growing_) {
    const std::int64_t step = growing_->step_of(epoch, position);
    batch = growing_->sizes().of_step(step);
    begin = growing_->at(step).position;
  }
  const std::int64_t place = position - begin;
  // The first `longer` of the K rows have one position more than the others.
  const std::int64_t row = batch / repeats_, longer = batch % repeats_;
  const std::int64_t of_longer = longer * (row + 1);
  const bool is_longer = place < of_longer;
  const std::int64_t length = is_longer ? row + 1 : row;
  const std::int64_t from = is_longer ? place : place - of_longer;
  const std::int64_t first = is_longer ? from / length : longer + from / length;
  return (begin + first + from % length * repeats_) / repeats_;
}

}  // namespace scaletrain::data
