// The numbers a step computes with: fp32 or tf32, bf16 or fp16 by autocast with fp32 parameters,
// bf16 for the parameters too, fp8 in the linear layers, fp64 throughout.
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
  int compute_capability = 0;  // for a CUDA device, 80 for 8.0
  bool avx512 = has_avx512();  // the CPU's
};

class Precision {
 public:
  virtual ~Precision() = default;

  // Runs `body` (forward and loss) in this precision.
  virtual at::Tensor forward(const std::function<at::Tensor()>& body) = 0;

  // The type of the model's parameters; of fp64 its buffers and images have it too.
  virtual at::ScalarType weights() const { return at::kFloat; }

  // How hidden linear layers multiply; empty: as ATen does under forward().
  virtual units::LinearProduct linear_product() const { return {}; }

  // Loss that backward starts from: `loss` times the loss scale, if there is one.
  virtual at::Tensor scale(const at::Tensor& loss) { return loss; }
  // Divides gradients by the loss scale, if there is one.
  virtual void unscale(const std::vector<at::Tensor>& gradients) { (void)gradients; }
  // Called once a step; `found_inf`, a 0-dim float on the device, is 1 where it was not finite on
  // all ranks, otherwise 0.
  virtual void update(const at::Tensor& found_inf) { (void)found_inf; }
  // Returns the loss scale until the next update(): a 0-dim float on the device that update()
  // changes in place; undefined if losses are not scaled.
  virtual at::Tensor loss_scale() const { return {}; }

  // State for a checkpoint, 0-dim tensors of numbers from 0 by name, those of floats above 0;
  // copying into them restores it. {}: none.
  virtual std::map<std::string, at::Tensor> state() { return {}; }
};

// True if bf16 is faster than fp32: with AVX-512 on a CPU, or a compute capability of 8.0.
bool multiplies_bf16(const Hardware& hardware);

// Falls back to fp32, with a warning, where the hardware lacks the precision.
std::unique_ptr<Precision> make_precision(const recipe::Component& precision,
                                          const Hardware& hardware);

}  // namespace scaletrain::precision
