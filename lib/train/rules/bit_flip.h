// Single-bit flips for tests of silent data corruption, planted by the environment variable
// SCALETRAIN_FAULT (lib/train/rules/fault.h), never by a recipe key.
//
//   SCALETRAIN_FAULT=flip-bit:rank=R@step=S:where=PLACE:bit=B[:index=I]
//
//   weights     parameters that the rank updates, after the update of step S (from 1)
//   moments     optimizer state, after the update
//   gradients   gradients after the reduction, before they are clipped
//   comm        a parameter's gradient in backward, before it enters the reduction
//   products    a matrix product of a linear layer in forward (with /integrity/products)
//
// Bit 0 is the lowest bit of an element. I counts the elements of the place's floating-point
// tensors on the rank, in a fixed order, modulo their number (default 0); for products the layer is
// I modulo the number of layers, and the element the quotient. A flip happens once in a process;
// the second of two flips of one place and step happens if the step is repeated.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::train {

struct BitFlip {
  enum class Where { kWeights, kMoments, kGradients, kComm, kProducts };
  int rank = 0;
  std::int64_t step = 0;  // from 1
  Where where = Where::kWeights;
  int bit = 0;
  std::int64_t index = 0;
};

// Returns nullopt if `text` is another kind of fault. Throws core::UsageError for an invalid flip.
std::optional<BitFlip> parse_bit_flip(const std::string& text);

// Flips one bit of element `index` of `tensors`, counted modulo their number. Throws
// core::UsageError if the element has no such bit.
void flip_bit(const std::vector<at::Tensor>& tensors, std::int64_t index, int bit);

// Flips a bit of the gradient of element `index` of `parameters` in the next backward, before the
// gradient is accumulated and reduced.
void flip_in_backward(const std::vector<at::Tensor>& parameters, const BitFlip& flip);

// The flips of a rank that have not happened yet.
class PlantedFlips {
 public:
  // Reads the environment variable.
  explicit PlantedFlips(int rank);

  // Takes the flip of this place at `step` (from 1), if there is one; it happens once.
  std::optional<BitFlip> take(BitFlip::Where where, std::int64_t step);
  // Commits such a flip in the floating-point tensors that `tensors` returns.
  void commit(BitFlip::Where where, std::int64_t step,
              const std::function<std::vector<at::Tensor>()>& tensors);

 private:
  std::vector<BitFlip> flips_;
};

}  // namespace scaletrain::train
