// The names from Python's modules that a pickle may use: a value stands for each, and nothing of
// Python is ever called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace scaletrain::format {

enum class PickleGlobalKind : std::uint8_t {
  kOrderedDict,
  kEncode,            // bytes of protocol 2: text of which each character is a byte
  kSize,              // a tuple
  kDevice,            // left aside
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

// The row of "MODULE.NAME"; nullptr for any other.
const PickleGlobal* find_pickle_global(std::string_view name);

// "torch.FloatStorage" or "torch.float32" for dtype "F32": the row of that kind, nullptr where
// there is none.
const PickleGlobal* find_pickle_global(PickleGlobalKind kind, std::string_view dtype);

}  // namespace scaletrain::format
