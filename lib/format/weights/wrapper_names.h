// Prefixes that training programs add to tensor names: the attribute of a Lightning module
// ("model.", "net.", "backbone."), DistributedDataParallel ("module."), torch.compile
// ("_orig_mod."), Lightning's strategies ("_forward_module.") and FSDP ("_fsdp_wrapped_module."),
// one or several, in any order.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

// Returns `name` without all such prefixes: "fc.weight" for "model._orig_mod.fc.weight".
std::string_view without_wrappers(std::string_view name);

// Returns the wrapper prefix with the largest sum of `score(rest)` over the names that have it,
// where `rest` is the name without the prefix; the shortest of equals, "" if no prefix is better
// than none.
std::string common_wrapper(const std::vector<std::string>& names,
                           const std::function<int(const std::string& rest)>& score);

}  // namespace scaletrain::format
