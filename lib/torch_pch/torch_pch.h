// The parts of LibTorch that most sources with tensors need, parsed once. No more than that: GCC
// instantiates what a precompiled header leaves pending anew in every source.
#pragma once
#include <ATen/ATen.h>
#include <torch/nn/module.h>
