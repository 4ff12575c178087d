#include "lib/format/pt/pickle.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "tests/format/pt/pt_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// A value as Python shows it, without what is left aside.
std::string shown_value(const Pickle& pickle, PickleId id) {
  const PickleValue& value = pickle.at(id);
  std::string items;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const bool is_value = value.kind == PickleKind::kDict && i % 2 == 1;
    items += i == 0 ? "" : is_value ? ": " : ", ";
    items += shown_value(pickle, value.items[i]);
  }
  switch (value.kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return value.integer != 0 ? "True" : "False";
    case PickleKind::kInteger:
      return std::to_string(value.integer);
    case PickleKind::kBigInteger:
      return "big";
    case PickleKind::kFloat:
      return "float";
    case PickleKind::kText:
      return fmt::format("'{}'", pickle.text(value));
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kTuple:
      return fmt::format("({})", items);
    case PickleKind::kList:
      return fmt::format("[{}]", items);
    case PickleKind::kDict:
      return fmt::format("{{{}}}", items);
    case PickleKind::kDevice:
      return "device";
    case PickleKind::kGlobal:
      return std::string(value.global->name);
    case PickleKind::kCall:
      return fmt::format("{}{}", value.global->name, items);
    case PickleKind::kPersistent:
      return fmt::format("stored {}", items);
  }
  return "nothing";
}

std::string read_value(const std::string& bytes) {
  const Pickle pickle = read_pickle(bytes, "a.pt");
  return shown_value(pickle, pickle.root);
}

std::string pickle_problem(const std::string& bytes) {
  try {
    read_pickle(bytes, "a.pt");
  } catch (const core::CheckpointError& error) {
    CHECK(error.place() == "a.pt");
    CHECK(error.remedy() == kPickleRemedy);
    return error.found();
  }
  return "nothing";
}

std::string text_of_bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

}  // namespace

TEST_CASE("plain values are read") {
  struct Case {
    std::string opcodes, value;
  };
  const std::string device = test::pickled_global("torch", "device");
  const std::string encode = test::pickled_global("_codecs", "encode");
  for (const auto& [opcodes, value] : std::vector<Case>{
           {"N", "None"},
           {"\x88", "True"},
           {"\x89", "False"},
           {"K\xff", "255"},
           {"M\xff\xff", "65535"},
           {"J\xfe\xff\xff\xff", "-2"},
           {text_of_bytes({0x8a, 0}), "0"},
           {"\x8a\x01\xff", "-1"},
           {"\x8a\x02\xff" + std::string(1, '\0'), "255"},
           {"\x8a\x08\x01\x02\x03\x04\x05\x06\x07\x08", "578437695752307201"},
           {"\x8a\x09" + std::string(9, '\1'), "big"},
           {"\x8b" + test::little_endian(1, 4) + "\x05", "5"},
           {"G" + std::string(8, '\0'), "float"},
           {test::pickled_text("é"), "'é'"},
           {"\x8c\x02ok", "'ok'"},
           {"\x8d" + test::little_endian(2, 8) + "ok", "'ok'"},
           {"C\x01x", "bytes"},
           {"B" + test::little_endian(1, 4) + "x", "bytes"},
           {"\x8e" + test::little_endian(1, 8) + "x", "bytes"},
           {")", "()"},
           {"K\1\x85", "(1)"},
           {"K\1K\2\x86", "(1, 2)"},
           {"K\1K\2K\3\x87", "(1, 2, 3)"},
           {"(K\1K\2K\3K\4t", "(1, 2, 3, 4)"},
           {"(t", "()"},
           {"]", "[]"},
           {"]K\1a", "[1]"},
           {"](K\1K\2e", "[1, 2]"},
           {"}", "{}"},
           {"}K\1K\2s", "{1: 2}"},
           {"}(K\1K\2K\3Nu", "{1: 2, 3: None}"},
           {"]q\1h\1a0]", "[]"},
           {"K\1(K\2K\3"
            "1",
            "1"},
           {"K\7q\5"
            "0h\5",
            "7"},
           {"K\7r" + test::little_endian(70000, 4) + "0j" + test::little_endian(70000, 4), "7"},
           {"K\7\x94K\x08\x94h" + std::string(1, '\0') + "h\1\x86\x86\x86", "(7, (8, (7, 8)))"},
           {"\x95" + test::little_endian(1, 8) + "K\1", "1"},
           {test::pickled_global("collections", "OrderedDict") + ")R(K\1K\2u}b", "{1: 2}"},
           {test::pickled_global("torch", "Size") + "K\1K\2\x86\x85R", "(1, 2)"},
           {test::pickled_global("torch", "float32"), "torch.float32"},
           {device + test::pickled_text("cuda") + "K\1\x86R", "device"},
           {encode + test::pickled_text("x") + test::pickled_text("latin1") + "\x86R", "bytes"},
           {test::pickled_text("torch") + test::pickled_text("int8") + "\x93", "torch.int8"},
           {"K\1Q", "stored 1"},
           {test::pickled_global("torch._utils", "_rebuild_parameter") + "K\1\x85R",
            "torch._utils._rebuild_parameter(1)"}}) {
    CHECK(read_value(test::pickle_of(opcodes)) == value);
  }
  for (const char protocol : {2, 3, 4, 5}) {
    CHECK(read_value(std::string("\x80") + protocol + "K\1.") == "1");
  }
}

TEST_CASE("a pickle that breaks a rule is refused") {
  struct Case {
    std::string opcodes, problem;
  };
  const std::string ordered = test::pickled_global("collections", "OrderedDict");
  for (const auto& [opcodes, problem] : std::vector<Case>{
           {"0", "uses a missing value at byte 2"},
           {"K\1(0", "uses a missing value at byte 5"},
           {"1", "uses a missing mark at byte 2"},
           {"t", "uses a missing mark at byte 2"},
           {"", "ends with 0 values and 0 marks, where 1 value is expected"},
           {"NN", "ends with 2 values and 0 marks, where 1 value is expected"},
           {"N(", "ends with 1 value and 1 mark, where 1 value is expected"},
           {"N.N", "has data after its end at byte 4"},
           {"h\1", "reads value 1 before it is stored at byte 2"},
           {"q\1", "uses a missing value at byte 2"},
           {"}Na", "adds to a value that is not a list at byte 4"},
           {"]NNs", "adds to a value that is not a dict at byte 5"},
           {"}(Nu", "has a key without a value at byte 5"},
           {"NN}s", "adds to a value that is not a dict at byte 5"},
           {"X" + test::little_endian(9, 4) + "abc",
            "is truncated: the opcode at byte 2 needs 5 bytes more"},
           {"\x8d" + test::little_endian(~0ULL, 8),
            "is truncated: the opcode at byte 2 needs 18446744073709551614 bytes more"},
           {"X" + test::little_endian(1, 4) + "\xff", "has a text that is not UTF-8 at byte 2"},
           {"ctorch", "is truncated in the name at byte 2"},
           {"ctorch\nFloat", "is truncated in the name at byte 2"},
           {"NN\x93", "has a name that is not a text at byte 4"},
           {"N)R", "calls a value that is not a name at byte 4"},
           {ordered + "NR", "calls a value that is not a name at byte 28"},
           {ordered + "N\x85R", "refuses to call collections.OrderedDict with 1 value at byte 29"},
           {test::pickled_global("torch", "FloatStorage") + ")R",
            "refuses to call torch.FloatStorage with 0 values at byte 23"},
           {"NNb", "refuses to set the members of an object at byte 4"},
           {"}Nb", "refuses to set the members of an object at byte 4"},
           {"\x80\x02N", "refuses the unknown opcode 0x80 at byte 2"}}) {
    CHECK(pickle_problem(test::pickle_of(opcodes)) == problem);
  }
  CHECK(pickle_problem("") == "is truncated: the opcode at byte 0 needs 1 byte more");
  CHECK(pickle_problem("N.") == "does not begin as a pickle of protocol 2 or later");
  CHECK(pickle_problem("\x80\x01N.") == "is a pickle of protocol 1, where 2 to 5 are read");
  CHECK(pickle_problem("\x80\x06N.") == "is a pickle of protocol 6, where 2 to 5 are read");
  CHECK(pickle_problem("\x80\x02N") == "is truncated: the opcode at byte 3 needs 1 byte more");
}

TEST_CASE("what would run is refused by its name") {
  using test::pickled_global;
  CHECK(pickle_problem(test::pickle_of("]K\1a}(" + test::pickled_text("a") +
                                       pickled_global("os", "system") + "u")) ==
        "refuses to run os.system at byte 14");
  for (const char* const name : {"eval", "exec", "getattr", "__import__"}) {
    CHECK(pickle_problem(test::pickle_of(pickled_global("builtins", name))) ==
          fmt::format("refuses to run builtins.{} at byte 2", name));
    CHECK(
        pickle_problem(
            test::pickle_of(test::pickled_text("builtins") + test::pickled_text(name) + "\x93")) ==
        fmt::format("refuses to run builtins.{} at byte {}", name, 20 + std::string(name).size()));
  }
  // A name with what would change the terminal, or that only begins as one that is known.
  CHECK(pickle_problem(test::pickle_of(pickled_global("a\x1b", "b"))) ==
        "refuses to run a\\x1b.b at byte 2");
  CHECK(pickle_problem(test::pickle_of(pickled_global("torch", "FloatStorage2"))) ==
        "refuses to run torch.FloatStorage2 at byte 2");
  CHECK(pickle_problem(test::pickle_of(pickled_global("torch._utils", "x._rebuild_tensor_v2"))) ==
        "refuses to run torch._utils.x._rebuild_tensor_v2 at byte 2");
}

TEST_CASE("an unsupported pickle opcode is refused by its name") {
  struct Case {
    int opcode;
    std::string name;
  };
  for (const auto& [opcode, name] :
       std::vector<Case>{{'2', "opcode DUP"},           {'F', "opcode FLOAT"},
                         {'I', "opcode INT"},           {'L', "opcode LONG"},
                         {'P', "opcode PERSID"},        {'S', "opcode STRING"},
                         {'T', "opcode BINSTRING"},     {'U', "opcode SHORT_BINSTRING"},
                         {'V', "opcode UNICODE"},       {'d', "opcode DICT"},
                         {'g', "opcode GET"},           {'i', "opcode INST"},
                         {'l', "opcode LIST"},          {'o', "opcode OBJ"},
                         {'p', "opcode PUT"},           {0x81, "opcode NEWOBJ"},
                         {0x82, "opcode EXT1"},         {0x83, "opcode EXT2"},
                         {0x84, "opcode EXT4"},         {0x8f, "opcode EMPTY_SET"},
                         {0x90, "opcode ADDITEMS"},     {0x91, "opcode FROZENSET"},
                         {0x92, "opcode NEWOBJ_EX"},    {0x96, "opcode BYTEARRAY8"},
                         {0x97, "opcode NEXT_BUFFER"},  {0x98, "opcode READONLY_BUFFER"},
                         {0xfe, "unknown opcode 0xfe"}, {0, "unknown opcode 0x00"}}) {
    CHECK(pickle_problem(test::pickle_of(std::string(1, static_cast<char>(opcode)))) ==
          fmt::format("refuses the {} at byte 2", name));
  }
}

TEST_CASE("a pickle that would take the memory is refused") {
  std::string values = "(";
  values.append(4'000'000, ']');
  CHECK(pickle_problem(test::pickle_of(values + "t")) ==
        "has more than 4000000 values at byte 3999998");
  CHECK(pickle_problem(std::string(32'000'001, 'N')) ==
        "has 32000001 bytes, where at most 32000000 are read");
}
