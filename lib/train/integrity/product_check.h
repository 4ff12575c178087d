// Checksums of matrix products (algorithm-based fault tolerance, Huang and Abraham 1984): the
// column sums of a linear layer's output Y = X W^T must be those of X, times W^T.
//
// The tolerance follows from the rounding of a product of inner size k: an element's error is a sum
// of k roundings of unit u, which are independent (Higham and Mary, A new approach to probabilistic
// rounding error analysis, 2019): at most lambda sqrt(k) u sum_l |x_il| |w_jl|, by Cauchy-Schwarz
// lambda sqrt(k) u |x_i| |w_j|. Over the rows of a column they add up to lambda sqrt(k) u |X|_F
// |w_j|, and the rounding of Y itself to lambda u_Y |y_j|. lambda is 8: a false alarm would be a
// deviation of eight standard deviations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "lib/train/rules/bit_flip.h"

namespace scaletrain::train {

// Returns the largest ratio of a column's difference to its tolerance, a 0-dim double on their
// device: above 1 the product is wrong. input [..., in], weight [out, in], bias [out] or undefined,
// output [..., out]. 0 if an input is not finite.
at::Tensor checksum_ratio(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& output);

// The worst product of a step.
struct WrongProduct {
  std::int64_t step = 0;  // from 1
  std::string layer;
  double ratio = 0;  // to the tolerance
};

// Watches the products of a model's linear layers, which nothing has replaced (fp8, zero-bubble),
// in the forward of training steps.
class ProductCheck {
 public:
  // `every`: all layers in each step; otherwise one layer a step, in turn. `next`: the step (from
  // 1) that comes next; `rank`: for planted flips.
  ProductCheck(nn::Model& model, bool every, std::int64_t next, int rank);

  std::size_t layers() const;
  // Call after the last backward of a step, or after a change of steps: `next` comes next.
  void begin(std::int64_t next);
  // Returns the first wrong product since the last call; nullopt: none. Waits for the device.
  std::optional<WrongProduct> take();

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;  // shared with the layers
};

}  // namespace scaletrain::train
