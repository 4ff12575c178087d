// Precompiled header: the parts of LibTorch that most sources with tensors need. It includes no
// more, because GCC repeats the pending template instantiations of a precompiled header in every
// source.
#pragma once
#include <ATen/ATen.h>
#include <torch/nn/module.h>
