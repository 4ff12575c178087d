// Parses pickles of protocol 2 to 5 with plain containers and the types of torch.save. Nothing is
// imported, called or constructed: Python names are looked up in a list (pickle_globals.h), and
// unknown names or opcodes are refused.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/pt/pickle_globals.h"

namespace scaletrain::format {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kBigInteger,  // more than 64 bits; value ignored
  kFloat,       // value ignored
  kText,
  kBytes,  // contents ignored
  kTuple,
  kList,
  kDict,
  kDevice,      // ignored
  kGlobal,      // a name of Python
  kCall,        // a name that rebuilds a tensor, with its arguments
  kPersistent,  // storage that torch.save keeps outside of the pickle (persistent id)
};

using PickleId = std::uint32_t;  // index into Pickle::values

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  std::uint32_t at = 0;                  // byte of the opcode that created it
  std::int64_t integer = 0;              // kBool (0 or 1), kInteger
  std::uint32_t begin = 0, bytes = 0;    // kText: range in the pickle
  const PickleGlobal* global = nullptr;  // kGlobal, kCall
  std::vector<PickleId> items;  // kTuple, kList; kDict: key, value, key, ...; kCall: the tuple of
                                // its arguments; kPersistent: its tuple
};

// Values may be shared and, in a hostile pickle, contain themselves: code that follows `items` must
// limit its depth.
struct Pickle {
  std::string place;  // for messages
  std::string bytes;
  std::deque<PickleValue> values;  // a growing vector would need twice the memory
  PickleId root = 0;

  const PickleValue& at(PickleId id) const { return values[id]; }
  std::string_view text(const PickleValue& value) const {
    return std::string_view(bytes).substr(value.begin, value.bytes);
  }
};

// Largest accepted pickle (some 100,000 tensors); its values take at most 100 times its bytes of
// memory.
inline constexpr std::int64_t kMaxPickleBytes = 32'000'000;

// Parses all of `bytes`. Throws core::CheckpointError naming `place`, what is refused and its byte:
// "refuses to run os.system at byte 17".
Pickle read_pickle(std::string bytes, const std::string& place);

// Advice in errors about a pickle with anything but tensors in containers.
inline constexpr const char* kPickleRemedy =
    "only tensors in dicts, lists and tuples are read, nothing is run: where you trust the file, "
    "load it in Python and save the model's state_dict() alone";

}  // namespace scaletrain::format
