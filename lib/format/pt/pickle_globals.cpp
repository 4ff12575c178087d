#include "lib/format/pt/pickle_globals.h"

#include <algorithm>
#include <array>

namespace scaletrain::format {
namespace {

using Kind = PickleGlobalKind;

constexpr auto kPickleGlobals = std::to_array<PickleGlobal>({
    {"collections.OrderedDict", Kind::kOrderedDict, ""},
    {"_codecs.encode", Kind::kEncode, ""},
    {"torch.Size", Kind::kSize, ""},
    {"torch.device", Kind::kDevice, ""},
    {"torch._utils._rebuild_tensor_v2", Kind::kRebuildTensor, ""},
    {"torch._utils._rebuild_tensor_v3", Kind::kRebuildAs, ""},
    {"torch._utils._rebuild_parameter", Kind::kRebuildParameter, ""},
    {"torch.DoubleStorage", Kind::kStorage, "F64"},
    {"torch.FloatStorage", Kind::kStorage, "F32"},
    {"torch.HalfStorage", Kind::kStorage, "F16"},
    {"torch.BFloat16Storage", Kind::kStorage, "BF16"},
    {"torch.LongStorage", Kind::kStorage, "I64"},
    {"torch.IntStorage", Kind::kStorage, "I32"},
    {"torch.ShortStorage", Kind::kStorage, "I16"},
    {"torch.CharStorage", Kind::kStorage, "I8"},
    {"torch.ByteStorage", Kind::kStorage, "U8"},
    {"torch.BoolStorage", Kind::kStorage, "BOOL"},
    {"torch.ComplexFloatStorage", Kind::kStorage, "C64"},
    {"torch.storage.UntypedStorage", Kind::kStorage, ""},
    {"torch.float64", Kind::kDtype, "F64"},
    {"torch.float32", Kind::kDtype, "F32"},
    {"torch.float16", Kind::kDtype, "F16"},
    {"torch.bfloat16", Kind::kDtype, "BF16"},
    {"torch.float8_e4m3fn", Kind::kDtype, "F8_E4M3"},
    {"torch.float8_e5m2", Kind::kDtype, "F8_E5M2"},
    {"torch.float8_e8m0fnu", Kind::kDtype, "F8_E8M0"},
    {"torch.float8_e4m3fnuz", Kind::kDtype, "F8_E4M3FNUZ"},
    {"torch.float8_e5m2fnuz", Kind::kDtype, "F8_E5M2FNUZ"},
    {"torch.int64", Kind::kDtype, "I64"},
    {"torch.int32", Kind::kDtype, "I32"},
    {"torch.int16", Kind::kDtype, "I16"},
    {"torch.int8", Kind::kDtype, "I8"},
    {"torch.uint64", Kind::kDtype, "U64"},
    {"torch.uint32", Kind::kDtype, "U32"},
    {"torch.uint16", Kind::kDtype, "U16"},
    {"torch.uint8", Kind::kDtype, "U8"},
    {"torch.bool", Kind::kDtype, "BOOL"},
    {"torch.complex64", Kind::kDtype, "C64"},
    {"torch.complex128", Kind::kDtype, ""},
});

template <class Test>
const PickleGlobal* find_row(const Test& test) {
  const auto* const found = std::find_if(kPickleGlobals.begin(), kPickleGlobals.end(), test);
  return found == kPickleGlobals.end() ? nullptr : found;
}

}  // namespace

const PickleGlobal* find_pickle_global(std::string_view name) {
  return find_row([&](const PickleGlobal& row) { return row.name == name; });
}

const PickleGlobal* find_pickle_global(PickleGlobalKind kind, std::string_view dtype) {
  return find_row([&](const PickleGlobal& row) { return row.kind == kind && row.dtype == dtype; });
}

}  // namespace scaletrain::format
