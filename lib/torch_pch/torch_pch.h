// The parts of LibTorch that most sources with tensors need, parsed once.
#pragma once
#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/nn/functional.h>
#include <torch/nn/module.h>
#include <torch/nn/modules.h>
