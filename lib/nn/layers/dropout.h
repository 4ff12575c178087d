// Layers that draw random numbers, and where ranks that share a model draw different ones.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

namespace scaletrain::nn {

// A layer that draws from the process's generator, which stands alike on all ranks that share a
// model, since they draw alike.
class Drawing : public torch::nn::Module {
 public:
  // It works on something else than the other ranks do: from here on it draws what belongs to
  // `place`, this rank's number among them.
  void draw_apart(std::uint64_t place) { place_ = place; }

 protected:
  std::optional<std::uint64_t> place() const { return place_; }

 private:
  std::optional<std::uint64_t> place_;
};

// While it lives the generator of `device` gives numbers of that place alone, a function of where
// it stood; afterwards it stands alike on all ranks again. Without a place it does nothing.
class DrawsApart {
 public:
  DrawsApart(std::optional<std::uint64_t> place, at::Device device);
  ~DrawsApart();
  DrawsApart(const DrawsApart&) = delete;
  DrawsApart& operator=(const DrawsApart&) = delete;

 private:
  bool apart_;
  at::Device device_;
  std::uint64_t seed_ = 0;  // from before
};

// In training each number is zero with probability `rate`, and divided by 1 - rate where it stays.
class Dropout : public Drawing {
 public:
  explicit Dropout(double rate) : rate_(rate) {}

  at::Tensor forward(const at::Tensor& input) const;

 private:
  double rate_;
};

}  // namespace scaletrain::nn
