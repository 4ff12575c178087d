// Numbers of the host on their way to a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace scaletrain::dist {

// `values` as one dimension of doubles on `device`. Nothing waits: they are copied from pinned
// memory behind what is queued, and LibTorch keeps that memory until then.
at::Tensor send(std::span<const double> values, at::Device device);

}  // namespace scaletrain::dist
