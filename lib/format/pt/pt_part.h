// Selects a model's tensors from a torch.save file. Training scripts store them beside the
// optimizer's, below a key, and with prefixes of wrappers such as DistributedDataParallel.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/format/pt/pt_tensors.h"

namespace scaletrain::format {

struct PtPart {
  std::string name;                 // "state_dict": the selected key; "" for the top level
  std::string stripped;             // "module.": prefix that was removed from every name
  std::vector<std::string> others;  // other top-level keys that have tensors
  std::vector<std::pair<std::string, const PtTensor*>> tensors;  // sorted by name within the part
};

// Selects the part `wanted`, a top-level key or a dotted path of keys. If it is "": the first of
// state_dict, model_state_dict, model_state, model, net, network, module, weights, params,
// state_dict_ema, model_ema, ema that is a container with tensors; otherwise the top level if it
// has tensors; otherwise the only container with tensors. Removes "module."
// (DistributedDataParallel) and "_orig_mod." (torch.compile) if all names have them. Throws
// core::CheckpointError naming `place` and the keys if there is no such part or the choice is
// ambiguous.
PtPart choose_pt_part(const std::vector<PtTensor>& tensors, const std::string& place,
                      const std::string& wanted = "");

}  // namespace scaletrain::format
