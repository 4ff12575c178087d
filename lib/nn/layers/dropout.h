// Layers that draw random numbers, with different draws on ranks that share a model.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

namespace scaletrain::nn {

// A layer that draws from the process's generator, whose state is the same on all ranks that share
// a model, since they make the same draws.
class Drawing : public torch::nn::Module {
 public:
  // Makes the layer draw other numbers than other ranks, which work on other data; `place` is this
  // rank's number among them.
  void draw_apart(std::uint64_t place) { place_ = place; }

 protected:
  std::optional<std::uint64_t> place() const { return place_; }

 private:
  std::optional<std::uint64_t> place_;
};

// While this object lives, the generator of `device` gives numbers of that place, computed from its
// previous state; afterwards it has the same state on all ranks again. Does nothing without a
// place.
class DrawsApart {
 public:
  DrawsApart(std::optional<std::uint64_t> place, at::Device device);
  ~DrawsApart();
  DrawsApart(const DrawsApart&) = delete;
  DrawsApart& operator=(const DrawsApart&) = delete;

 private:
  bool apart_;
  at::Device device_;
  std::uint64_t seed_ = 0;  // previous seed
};

// In training each element is zero with probability `rate`, and divided by 1 - rate otherwise.
class Dropout : public Drawing {
 public:
  explicit Dropout(double rate) : rate_(rate) {}

  at::Tensor forward(const at::Tensor& input) const;

 private:
  double rate_;
};

}  // namespace scaletrain::nn
