#include "lib/format/safetensors/safetensors_header.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/format/checkpoint_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// What is wrong with a header of a file with `data_bytes` bytes behind it.
std::string problem(const std::string& header, std::int64_t data_bytes) {
  try {
    parse_safetensors_header(header, data_bytes, "model.safetensors");
  } catch (const core::CheckpointError& error) {
    CHECK(error.place() == "model.safetensors");
    CHECK(error.remedy() == "the file is damaged or is not safetensors: use another copy");
    return error.found();
  }
  return "nothing";
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":{}}})", dtype, shape, offsets);
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"a\":" + tensor(dtype, shape, offsets) + "}";
}

}  // namespace

TEST_CASE("a header gives the tensors by name and the metadata") {
  const SafetensorsHeader header = parse_safetensors_header(
      "{\"__metadata__\":{\"format\":\"pt\"},\"b\":" + tensor("F32", "[2,1]", "[0,8]") + ",\"a\":" +
          tensor("U8", "[]", "[8,9]") + ",\"c\":" + tensor("I64", "[0,5]", "[9,9]") + "}  ",
      9, "file");
  REQUIRE(header.tensors.size() == 3);
  CHECK(header.tensors[0].name == "a");
  CHECK(header.tensors[0].shape.empty());
  CHECK(header.tensors[0].begin == 8);
  CHECK(header.tensors[0].end == 9);
  CHECK(header.tensors[1].name == "b");
  CHECK(header.tensors[1].dtype == "F32");
  CHECK(header.tensors[1].shape == std::vector<std::int64_t>{2, 1});
  CHECK(header.tensors[2].begin == header.tensors[2].end);
  CHECK(header.metadata == std::map<std::string, std::string>{{"format", "pt"}});
}

TEST_CASE("a header is one JSON object") {
  CHECK(problem("", 0) == "the header does not begin with {");
  CHECK(problem("[]", 0) == "the header does not begin with {");
  CHECK(problem(" {}", 0) == "the header does not begin with {");
  CHECK(problem("\xef\xbb\xbf{}", 0) == "the header does not begin with {");
  CHECK(problem("{}x", 0) == "the header is not JSON at its byte 3");
  CHECK(problem("{\"a\":", 0) == "the header is not JSON at its byte 6");
  CHECK(problem("{\"\xff\":{}}", 0) == "the header is not JSON at its byte 3");
  CHECK(problem("{}", 0) == "nothing");
}

TEST_CASE("a member of a header is a tensor") {
  CHECK(problem(R"({"a":1})", 0) == "\"a\" is a number, not an object");
  CHECK(problem(R"({"a":-1})", 0) == "\"a\" is a number, not an object");
  CHECK(problem(R"({"a":[]})", 0) == "\"a\" is a list, not an object");
  CHECK(problem(R"({"a":"b"})", 0) == "\"a\" is a string, not an object");
  CHECK(problem(R"({"a":null})", 0) == "\"a\" is null, not an object");
  CHECK(problem(R"({"a\u001b":true})", 0) == "\"a\\x1b\" is true, not an object");
  CHECK(problem(R"({"a":{}})", 0) == "tensor \"a\" has no dtype");
  CHECK(problem(R"({"a":{"dtype":"U8"}})", 0) == "tensor \"a\" has no shape");
  CHECK(problem(R"({"a":{"dtype":"U8","shape":[]}})", 0) ==
        "tensor \"a\" has no data_offsets of two numbers");
  CHECK(problem(R"({"a":{"dtype":"U8","offset":0}})", 0) ==
        "tensor \"a\" has the unknown key \"offset\"");
  CHECK(problem(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0) == "tensor \"a\" has dtype twice");
  CHECK(problem(R"({"a":{"dtype":1}})", 0) == "tensor \"a\" has a number in dtype");
  CHECK(problem(R"({"a":{"shape":"1"}})", 0) == "tensor \"a\" has a string in shape");
  CHECK(problem(R"({"a":{"shape":{}}})", 0) == "tensor \"a\" has an object in shape");
}

TEST_CASE("a tensor's name is there once") {
  const std::string zero = tensor("U8", "[0]", "[0,0]");
  CHECK(problem("{\"a\":" + zero + ",\"b\":" + zero + ",\"a\":" + zero + "}", 0) ==
        "tensor \"a\" occurs twice");
}

TEST_CASE("a dtype is known") {
  CHECK(problem(one("F32", "[1]", "[0,4]"), 4) == "nothing");
  CHECK(problem(one("f32", "[1]", "[0,4]"), 4) == "tensor \"a\" has the unknown dtype \"f32\"");
  CHECK(problem(one("F4", "[2]", "[0,1]"), 1) == "tensor \"a\" has the unknown dtype \"F4\"");
}

TEST_CASE("a dimension and an offset are whole numbers from 0") {
  const std::string allowed = ", where whole numbers from 0 to 2^63 - 1 are allowed";
  CHECK(problem(one("U8", "[-2]", "[0,2]"), 2) == "tensor \"a\" has -2 in shape" + allowed);
  CHECK(problem(one("U8", "[2.0]", "[0,2]"), 2) == "tensor \"a\" has 2.0 in shape" + allowed);
  CHECK(problem(one("U8", "[1e1]", "[0,10]"), 10) == "tensor \"a\" has 1e1 in shape" + allowed);
  CHECK(problem(one("U8", "[9223372036854775808]", "[0,2]"), 2) ==
        "tensor \"a\" has 9223372036854775808 in shape" + allowed);
  CHECK(problem(one("U8", "[99999999999999999999]", "[0,2]"), 2) ==
        "tensor \"a\" has 99999999999999999999 in shape" + allowed);
  CHECK(problem(one("U8", "[2]", "[-1,1]"), 2) == "tensor \"a\" has -1 in data_offsets" + allowed);
  CHECK(problem(one("U8", "[true]", "[0,1]"), 1) == "tensor \"a\" has true in shape");
  CHECK(problem(one("U8", "[[2]]", "[0,2]"), 2) == "tensor \"a\" has a list in shape");
}

TEST_CASE("a shape cannot overflow or have endless dimensions") {
  const std::string huge = "[9223372036854775807,2]";
  CHECK(problem(one("U8", huge, "[0,0]"), 0) ==
        "tensor \"a\" has a shape whose size overflows 64 bits");
  CHECK(problem(one("F64", "[4611686018427387904]", "[0,0]"), 0) ==
        "tensor \"a\" has a shape whose size overflows 64 bits");
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ",1";
  CHECK(problem(one("U8", "[" + ones + "]", "[0,1]"), 1) ==
        "tensor \"a\" has more than 64 dimensions");
}

TEST_CASE("offsets span the tensor's size, leave no hole, overlap nothing and reach the end") {
  CHECK(problem(one("U8", "[2]", "[0,3]"), 3) ==
        "tensor \"a\" has data_offsets [0, 3], where 2 bytes are expected");
  CHECK(problem(one("U8", "[2]", "[2,0]"), 2) ==
        "tensor \"a\" has data_offsets [2, 0], where 2 bytes are expected");
  CHECK(problem(one("U8", "[2]", "[0,1,2]"), 2) == "tensor \"a\" has more than two data_offsets");
  CHECK(problem(one("U8", "[2]", "[0]"), 2) == "tensor \"a\" has no data_offsets of two numbers");
  CHECK(problem(one("U8", "[2]", "[1,3]"), 3) ==
        "tensor \"a\" begins at byte 1 of the data, where 0 is expected");
  CHECK(problem(one("U8", "[2]", "[0,2]"), 3) ==
        "the tensors take 2 bytes, the file has 3 for them");
  CHECK(problem(one("U8", "[2]", "[0,2]"), 1) ==
        "the tensors take 2 bytes, the file has 1 for them");
  const std::string both =
      "{\"a\":" + tensor("U8", "[2]", "[0,2]") + ",\"b\":" + tensor("U8", "[2]", "[1,3]") + "}";
  CHECK(problem(both, 3) == "tensor \"b\" begins at byte 1 of the data, where 2 is expected");
}

TEST_CASE("metadata is text to text") {
  CHECK(problem(R"({"__metadata__":{"a":"b"}})", 0) == "nothing");
  CHECK(problem(R"({"__metadata__":{"a":1}})", 0) ==
        "__metadata__ \"a\" is a number, not a string");
  CHECK(problem(R"({"__metadata__":{"a":{}}})", 0) ==
        "__metadata__ \"a\" is an object, not a string");
  CHECK(problem(R"({"__metadata__":null})", 0) == "\"__metadata__\" is null, not an object");
  CHECK(problem(R"({"__metadata__":{"a":"b","a":"c"}})", 0) ==
        "__metadata__ has the key \"a\" twice");
  CHECK(problem(R"({"__metadata__":{},"__metadata__":{}})", 0) == "__metadata__ occurs twice");
}
