// Selects a model's tensors from a torch.save file. Training scripts store them beside the
// optimizer's, below a key, and with prefixes of wrappers such as DistributedDataParallel.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/format/pt/pt_tensors.h"

namespace scaletrain::format {

struct PtPart {
  std::string name;                 // "state_dict": the key that was taken; "" for the top
  std::string stripped;             // "module.": was in front of every name, and is left out
  std::vector<std::string> others;  // further keys at the top below which tensors lie
  std::vector<std::pair<std::string, const PtTensor*>> tensors;  // sorted by name within the part
};

// The part called `wanted`, a key at the top or a path of keys joined by dots. If it is "": the
// first of state_dict, model_state_dict, model_state, model, net, network, module, weights, params,
// state_dict_ema, model_ema, ema that is a container with tensors; otherwise the top if tensors lie
// in it; otherwise the only container with tensors. "module." (DistributedDataParallel) and
// "_orig_mod." (torch.compile) in front of every name are left out. Throws core::CheckpointError
// naming `place` and the keys where there is no such part, or several and none of these names.
PtPart choose_pt_part(const std::vector<PtTensor>& tensors, const std::string& place,
                      const std::string& wanted = "");

}  // namespace scaletrain::format
