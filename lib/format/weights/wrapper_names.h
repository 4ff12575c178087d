// Prefixes that training programs put in front of the names of a model's tensors: the attribute of
// a Lightning module ("model.", "net.", "backbone."), DistributedDataParallel ("module."),
// torch.compile ("_orig_mod."), Lightning's strategies ("_forward_module.") and FSDP
// ("_fsdp_wrapped_module."), one or several, in any order.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

// Returns `name` without all such prefixes: "fc.weight" for "model._orig_mod.fc.weight".
std::string_view without_wrappers(std::string_view name);

// Returns the prefix of some of `names` for which the sum of `score(rest)` over the names that have
// it is largest, where `rest` is the name without it; the shortest of several, "" if none is better
// than the names as they are.
std::string common_wrapper(const std::vector<std::string>& names,
                           const std::function<int(const std::string& rest)>& score);

}  // namespace scaletrain::format
