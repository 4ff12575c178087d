// Copies numbers from the host to a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace scaletrain::dist {

// Returns `values` as a one-dimensional fp64 tensor on `device`, without waiting: they are copied
// from pinned memory after the queued work, and LibTorch keeps that memory until then.
at::Tensor send(std::span<const double> values, at::Device device);

}  // namespace scaletrain::dist
