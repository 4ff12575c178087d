#include "lib/format/pt/pt_tensors.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "tests/format/pt/pt_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

using test::pickled_dict;
using test::pickled_global;
using test::pickled_view;

PtTensors tensors_of(const std::string& opcodes) {
  return find_pt_tensors(read_pickle(test::pickle_of(opcodes), "a.pt"));
}

std::string tensors_problem(const std::string& opcodes) {
  try {
    tensors_of(opcodes);
  } catch (const core::CheckpointError& error) {
    CHECK(error.place() == "a.pt");
    CHECK(error.remedy() == kPickleRemedy);
    return error.found();
  }
  return "nothing";
}

std::vector<std::string> names_of(const std::string& opcodes) {
  std::vector<std::string> names;
  for (const PtTensor& tensor : tensors_of(opcodes).tensors) names.push_back(tensor.name);
  return names;
}

std::string parameter(const std::string& tensor, const std::string& hooks = "}") {
  return pickled_global("torch._utils", "_rebuild_parameter") + "(" + tensor + "\x88" + hooks +
         "tR";
}

// A tensor whose type stands beside its bytes; `rest` follows its hooks.
std::string retyped(const std::string& storage, std::int64_t bytes, const std::string& rest) {
  return pickled_global("torch._utils", "_rebuild_tensor_v3") + "((" +
         test::pickled_text("storage") + storage + test::pickled_text("0") +
         test::pickled_text("cpu") + test::pickled_number(bytes) + "tQK\1" +
         test::pickled_numbers({2}) + test::pickled_numbers({1}) + "\x89}" + rest + "tR";
}

}  // namespace

TEST_CASE("a tensor is found with its view and its storage") {
  const PtTensors found = tensors_of(pickled_dict(
      {{"b", pickled_view({.first = 1, .shape = {1, 2}, .strides = {99, 3}})},
       {"a", parameter(pickled_view({}))},
       {"c",
        pickled_view({.key = "1", .type = "ByteStorage", .shape = {0, 9}, .strides = {9, 1}})}}));
  REQUIRE(found.tensors.size() == 3);
  REQUIRE(found.storages.size() == 2);
  const PtTensor& a = found.tensors[0];
  CHECK(a.name == "a");
  CHECK(a.top_bytes == 0);
  CHECK(a.dtype == "F32");
  CHECK(a.shape == std::vector<std::int64_t>{2, 3});
  CHECK(a.strides == std::vector<std::int64_t>{3, 1});
  CHECK(a.first == 0);
  CHECK(pt_tensor_bytes(a) == 24);
  const PtTensor& b = found.tensors[1];
  CHECK(b.storage == a.storage);
  CHECK(b.first == 1);
  CHECK(b.strides == std::vector<std::int64_t>{0, 3});  // that of a dimension of 1 means nothing
  CHECK(found.storages[a.storage].key == "0");
  CHECK(found.storages[a.storage].bytes == 24);
  CHECK(found.tensors[2].dtype == "U8");
  CHECK(found.storages[found.tensors[2].storage].bytes == 6);
  CHECK(pt_tensor_bytes(found.tensors[2]) == 0);
}

TEST_CASE("every storage has its type") {
  struct Case {
    std::string type, dtype;
    std::int64_t bytes;
  };
  for (const auto& [type, dtype, bytes] : std::vector<Case>{{"DoubleStorage", "F64", 48},
                                                            {"FloatStorage", "F32", 24},
                                                            {"HalfStorage", "F16", 12},
                                                            {"BFloat16Storage", "BF16", 12},
                                                            {"LongStorage", "I64", 48},
                                                            {"IntStorage", "I32", 24},
                                                            {"ShortStorage", "I16", 12},
                                                            {"CharStorage", "I8", 6},
                                                            {"ByteStorage", "U8", 6},
                                                            {"BoolStorage", "BOOL", 6},
                                                            {"ComplexFloatStorage", "C64", 48}}) {
    const PtTensors found = tensors_of(pickled_view({.type = type}));
    CHECK(found.tensors[0].dtype == dtype);
    CHECK(found.tensors[0].name.empty());
    CHECK(found.storages[0].bytes == bytes);
  }
  const std::string bytes = pickled_global("torch.storage", "UntypedStorage");
  const PtTensors found = tensors_of(retyped(bytes, 3, pickled_global("torch", "float8_e4m3fn")));
  CHECK(found.tensors[0].dtype == "F8_E4M3");
  CHECK(found.tensors[0].first == 1);
  CHECK(found.storages[0].bytes == 3);
}

TEST_CASE("names are the path through the containers") {
  const std::string view = pickled_view({});
  CHECK(names_of(view + view + "\x86") == std::vector<std::string>{"0", "1"});
  CHECK(names_of(pickled_dict({{"a", "](" + view + "K\1" + view + "e"}, {"b", "N"}})) ==
        std::vector<std::string>{"a.0", "a.2"});
  CHECK(names_of("}K\7" + pickled_dict({{"x", view}}) + "s") == std::vector<std::string>{"7.x"});
  CHECK(names_of("}N" + view + "s") == std::vector<std::string>{"key@0"});
  const PtTensors found = tensors_of(
      pickled_dict({{"model.x", view},
                    {"model", pickled_dict({{"y", view}, {"z", pickled_dict({{"w", view}})}})}}));
  REQUIRE(found.tensors.size() == 3);
  CHECK(found.tensors[0].name == "model.x");
  CHECK(found.tensors[0].top_bytes == 0);  // a key with a dot is no container
  CHECK(found.tensors[1].name == "model.y");
  CHECK(found.tensors[1].top_bytes == 5);
  CHECK(found.tensors[2].name == "model.z.w");
  CHECK(found.tensors[2].top_bytes == 5);
}

TEST_CASE("a view stays within its storage") {
  const std::string over = "tensor \"\" has a shape whose size overflows 64 bits";
  const auto reaches = [](int element) {
    return fmt::format("tensor \"\" reaches to element {} of its storage, which has 6", element);
  };
  const std::int64_t huge = std::int64_t{1} << 62;
  struct Case {
    test::PickledView view;
    std::string problem;
  };
  for (const auto& [view, problem] : std::vector<Case>{
           {{.first = 1}, reaches(6)},
           {{.first = -1}, reaches(4)},
           {{.strides = {4, 1}}, reaches(6)},
           {{.shape = {7}, .strides = {1}}, reaches(6)},
           {{.first = 6, .shape = {}, .strides = {}}, reaches(6)},
           {{.first = 99, .shape = {0}, .strides = {1}}, "nothing"},
           {{.shape = {2, 2}, .strides = {1, 4}}, "nothing"},
           {{.shape = {3}, .strides = {huge}}, over},
           {{.first = huge, .shape = {2}, .strides = {huge}}, over},
           {{.shape = {huge, 4}, .strides = {0, 0}}, over},
           {{.shape = {1, 1}, .strides = {huge, huge}}, "nothing"},
           {{.shape = {2, 3}, .strides = {1}}, "tensor \"\" has 2 dimensions and 1 strides"},
           {{.shape = {-1}, .strides = {1}},
            "tensor \"\" has a size or stride at byte 106 that is not a whole number from 0"},
           {{.shape = {2}, .strides = {-1}},
            "tensor \"\" has a size or stride at byte 118 that is not a whole number from 0"},
           {{.shape = std::vector<std::int64_t>(65, 1),
           .strides = std::vector<std::int64_t>(65, 1)},
            "tensor \"\" has more than 64 dimensions"},
           {{.elements = -1}, "tensor \"\" has a storage of -1 elements"},
           {{.elements = huge}, fmt::format("tensor \"\" has a storage of {} elements", huge)}}) {
    CHECK(tensors_problem(pickled_view(view)) == problem);
  }
}

TEST_CASE("what is no plain tensor is refused") {
  const std::string view = pickled_view({});
  const std::string rebuild = pickled_global("torch._utils", "_rebuild_tensor_v2");
  const std::string bytes = pickled_global("torch.storage", "UntypedStorage");
  const std::string complex = pickled_global("torch", "complex128");
  struct Case {
    std::string opcodes, problem;
  };
  for (const auto& [opcodes, problem] : std::vector<Case>{
           {rebuild + ")R",
            "tensor \"\": torch._utils._rebuild_tensor_v2 at byte 36 has 0 values, where 6 are "
            "read"},
           {rebuild + "(NNNN\x89}tR",
            "tensor \"\": torch._utils._rebuild_tensor_v2 at byte 43 has a wrong value number 0"},
           {rebuild + "(NNNNN}tR",
            "tensor \"\": torch._utils._rebuild_tensor_v2 at byte 43 has a wrong value number 4"},
           {rebuild + "(NQNNN\x89}tR",
            "tensor \"\": torch._utils._rebuild_tensor_v2 at byte 44 has a "
            "wrong value number 1"},
           {rebuild + "(NQK\1))\x89}tR", "tensor \"\": the value at byte 37 is not a storage"},
           {parameter("K\1"),
            "tensor \"\": torch._utils._rebuild_parameter at byte 41 has a wrong value number 0"},
           {parameter(parameter(view)), "tensor \"\" is a parameter of a parameter"},
           {parameter(view, "}K\1K\2s"), "tensor \"\" has hooks at byte 214"},
           {pickled_view({.type = "float32"}),
            "tensor \"\": the value at byte 89 is not a storage"},
           {retyped(pickled_global("torch", "ByteStorage"), 3, pickled_global("torch", "int8")),
            "tensor \"\" has a storage of the type torch.ByteStorage at byte 93"},
           {retyped(bytes, 3, complex),
            "tensor \"\" has the dtype torch.complex128, which is not supported"},
           {retyped(bytes, 3, bytes),
            "tensor \"\" has the dtype torch.storage.UntypedStorage, which is not supported"},
           {pickled_dict({{"a", view}, {"b", pickled_view({.elements = 7})}}),
            "storage \"0\" has 24 bytes at byte 102 and 28 bytes at byte 285"},
           {pickled_dict({{"a", view}, {"a", view}}), "tensor \"a\" occurs twice"},
           {pickled_dict({{"a.b", view}, {"a", pickled_dict({{"b", view}})}}),
            "tensor \"a.b\" occurs twice"}}) {
    CHECK(tensors_problem(opcodes) == problem);
  }
}

TEST_CASE("a pickle that would make much of little is refused") {
  const std::string deep = "has containers more than 64 deep: one may hold itself";
  CHECK(tensors_problem("]q\1h\1a") == deep);
  CHECK(tensors_problem("}q\1K\1h\1s") == deep);
  std::string nested = "K\1";
  for (int i = 0; i < 66; ++i) nested += "\x85";
  CHECK(tensors_problem(nested) == deep);
  // Thirty lists, each twice in the next: 2^30 values to look at.
  std::string doubled = "]";
  for (char i = 0; i < 30; ++i) doubled += std::string("q") + i + "h" + i + "\x86";
  CHECK(tensors_problem(doubled) == "has more than 4000000 values to look at");
  // A name of a megabyte for each of a hundred tensors.
  std::string named = "(" + pickled_view({}) + "q\1";
  for (int i = 0; i < 99; ++i) named += "h\1";
  CHECK(tensors_problem(pickled_dict({{std::string(1'000'000, 'n'), named + "t"}})) ==
        "has names of more than 64000000 bytes");
  CHECK(tensors_problem(pickled_view({.shape = {16'000'000}, .strides = {0}})) == "nothing");
  CHECK(tensors_problem(pickled_view({.shape = {1'000'000'000'000}, .strides = {0}})) ==
        "tensor \"\" is expanded: more than 64000000 bytes would be made of those that are stored");
  const std::string half = pickled_view({.shape = {8'000'100}, .strides = {0}});
  CHECK(
      tensors_problem(pickled_dict({{"a", half}, {"b", half}})) ==
      "tensor \"b\" is expanded: more than 64000000 bytes would be made of those that are stored");
}
