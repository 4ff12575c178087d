#include "lib/format/pt/pickle_opcodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace scaletrain::format {

std::string describe_refused_opcode(unsigned char opcode) {
  struct Row {
    unsigned char opcode;
    std::string_view name;
  };
  static constexpr auto kRows = std::to_array<Row>({
      {'2', "DUP"},          {'F', "FLOAT"},
      {'I', "INT"},          {'L', "LONG"},
      {'P', "PERSID"},       {'S', "STRING"},
      {'T', "BINSTRING"},    {'U', "SHORT_BINSTRING"},
      {'V', "UNICODE"},      {'d', "DICT"},
      {'g', "GET"},          {'i', "INST"},
      {'l', "LIST"},         {'o', "OBJ"},
      {'p', "PUT"},          {0x81, "NEWOBJ"},
      {0x82, "EXT1"},        {0x83, "EXT2"},
      {0x84, "EXT4"},        {0x8f, "EMPTY_SET"},
      {0x90, "ADDITEMS"},    {0x91, "FROZENSET"},
      {0x92, "NEWOBJ_EX"},   {0x96, "BYTEARRAY8"},
      {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
  });
  const auto* const found = std::find_if(kRows.begin(), kRows.end(),
                                         [&](const Row& row) { return row.opcode == opcode; });
  if (found == kRows.end()) return fmt::format("the unknown opcode {:#04x}", opcode);
  return fmt::format("the opcode {}", found->name);
}

}  // namespace scaletrain::format
