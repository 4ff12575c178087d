// Python names that a pickle may use: each stands for a value, and no Python code is ever called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace scaletrain::format {

enum class PickleGlobalKind : std::uint8_t {
  kOrderedDict,
  kEncode,            // bytes in protocol 2: text in which each character is a byte
  kSize,              // a tuple
  kDevice,            // ignored
  kRebuildTensor,     // a view of a typed storage
  kRebuildAs,         // a view of bytes as a dtype
  kRebuildParameter,  // the tensor that it holds
  kStorage,
  kDtype,
};

struct PickleGlobal {
  std::string_view name;  // "torch._utils._rebuild_tensor_v2"
  PickleGlobalKind kind;
  std::string_view dtype;  // safetensors dtype of kStorage and kDtype; "" if it has none
};

// Returns the row of "MODULE.NAME"; nullptr for any other name.
const PickleGlobal* find_pickle_global(std::string_view name);

// Returns the row of a kind and dtype, such as "torch.FloatStorage" or "torch.float32" for "F32";
// nullptr if there is none.
const PickleGlobal* find_pickle_global(PickleGlobalKind kind, std::string_view dtype);

}  // namespace scaletrain::format
