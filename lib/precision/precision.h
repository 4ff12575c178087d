// Compute dtype of a training step (mixed precision): fp32 or tf32; bf16 or fp16 by autocast with
// fp32 parameters; bf16 parameters; fp8 linear layers; fp64.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/units/linear_product.h"

namespace scaletrain::precision {

// True if this CPU has the AVX-512 instructions that oneDNN's bf16 needs.
bool has_avx512();

// Hardware that a precision runs on.
struct Hardware {
  at::Device device = at::kCPU;
  int compute_capability = 0;  // of a CUDA device: 80 for 8.0
  bool avx512 = has_avx512();  // of the CPU
};

class Precision {
 public:
  virtual ~Precision() = default;

  // Runs `body` (forward and loss) in this precision.
  virtual at::Tensor forward(const std::function<at::Tensor()>& body) = 0;

  // Dtype of the model's parameters; with fp64, of its buffers and images too.
  virtual at::ScalarType weights() const { return at::kFloat; }

  // Product of the hidden linear layers; empty: ATen's product under forward().
  virtual units::LinearProduct linear_product() const { return {}; }

  // Loss that backward starts from: `loss` times the loss scale, if there is one.
  virtual at::Tensor scale(const at::Tensor& loss) { return loss; }
  // Divides gradients by the loss scale, if there is one.
  virtual void unscale(const std::vector<at::Tensor>& gradients) { (void)gradients; }
  // Called once a step; `found_inf`, a 0-dim float on the device, is 1 if a gradient of any rank is
  // not finite, otherwise 0.
  virtual void update(const at::Tensor& found_inf) { (void)found_inf; }
  // Returns the loss scale until the next update(): a 0-dim float on the device that update()
  // changes in place; undefined if losses are not scaled.
  virtual at::Tensor loss_scale() const { return {}; }

  // Returns the state for a checkpoint: 0-dim tensors by name, integers from 0 or floats above 0.
  // Copying values into them restores the state. Empty if there is none.
  virtual std::map<std::string, at::Tensor> state() { return {}; }
};

// True if bf16 is faster than fp32: on a CPU with AVX-512, or a GPU of compute capability 8.0 or
// higher.
bool multiplies_bf16(const Hardware& hardware);

// Makes the recipe's precision; falls back to fp32, with a warning, on hardware that lacks it.
std::unique_ptr<Precision> make_precision(const recipe::Component& precision,
                                          const Hardware& hardware);

}  // namespace scaletrain::precision
