// FLOPs of one operation of ATen, from the sizes of its inputs.
#pragma once

#include <ATen/record_function.h>

#include <optional>

#include "lib/units/flops.h"

namespace scaletrain::units {

// Call in the start callback of an operation that is observed with its inputs; nullopt: it is not
// counted. Formulas as in torch/utils/flop_counter.py, except that grouped convolutions divide the
// weight gradient by the groups, and causal attention leaves out masked pairs.
std::optional<Flops> flops_of(const at::RecordFunction& function);

}  // namespace scaletrain::units
