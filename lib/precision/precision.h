// The numbers a step computes with: fp32, or bf16 by autocast with fp32 parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::precision {

class Precision {
 public:
  virtual ~Precision() = default;

  // Runs `body` (forward and loss) in this precision.
  virtual at::Tensor forward(const std::function<at::Tensor()>& body) = 0;

  // What backward starts from: `loss` times the loss scale, if there is one.
  virtual at::Tensor scale(const at::Tensor& loss) { return loss; }
  // Divides gradients by the loss scale, if there is one.
  virtual void unscale(const std::vector<at::Tensor>& gradients) { (void)gradients; }
  // Told once a step whether it was finite on all ranks.
  virtual void update(bool finite) { (void)finite; }

  // State of the gradient scaler for a checkpoint; {} where there is none.
  virtual nlohmann::json state() const;
  virtual void load_state(const nlohmann::json& state);
};

// Whether LibTorch has bf16 for it that is faster than fp32; on a CPU it needs AVX-512.
bool multiplies_bf16(at::Device device);

// bf16 on a device without it is fp32, with a warning.
std::unique_ptr<Precision> make_precision(const recipe::Component& precision, at::Device device);

}  // namespace scaletrain::precision
