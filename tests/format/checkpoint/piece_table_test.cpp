#include "lib/format/checkpoint/piece_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "tests/format/checkpoint/piece_support.h"
#include "tests/format/checkpoint_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kPieceRemedy =
    "\n  use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete";

// [4, 3] of F32: two rows, and the other two in ranges of 4 and 2 elements.
PieceTables sound_tables() {
  const Piece lower = test::box({2, 0}, {2, 3});
  Piece four = lower, two = lower;
  four.last = two.first = 4;
  return {
      {"model.safetensors",
       {{"w",
         {"F32", {4, 3}, {{test::box({0, 0}, {2, 3}), "a", 100}, {four, "b", 8}, {two, "c", 8}}}},
        {"empty", {"F32", {0, 3}, {}}}}}};
}

FileEntries listed_files() { return {{"a", {124, "x"}}, {"b", {32, "x"}}, {"c", {20, "x"}}}; }

CutTensor& w_of(PieceTables& tables) { return tables.at("model.safetensors").at("w"); }

std::string refused(const std::function<void(PieceTables&, FileEntries&)>& change) {
  PieceTables tables = sound_tables();
  FileEntries files = listed_files();
  change(tables, files);
  return test::message_of<core::CheckpointError>([&] { check_tables(tables, files, "here"); });
}

// What reading `tensors` as the table of a sealed manifest says.
std::string refused_text(const std::string& tensors) {
  const test::TemporaryFolder folder;
  const std::string body =
      fmt::format(R"({{"format":2,"program":"p","step":1,)"
                  R"("files":{{"a":{{"bytes":124,"sha256":"x"}}}},"tensors":{})",
                  tensors);
  test::write_bytes(folder.path / "manifest.json",
                    fmt::format("{},\n \"manifest_sha256\": \"{}\"\n}}\n", body,
                                core::Sha256().update(body).hex()));
  const std::string found =
      test::message_of<core::CheckpointError>([&] { read_manifest(folder.path); });
  return test::replaced(found, (folder.path / "manifest.json").string(), "M");
}

}  // namespace

TEST_CASE("a table is a line for each tensor in the manifest, and is read back") {
  Manifest manifest{.program = "scaletrain 0.1.0", .step = 12, .files = listed_files()};
  manifest.tensors = sound_tables();
  const std::string text = render_manifest(manifest);
  CHECK(text.starts_with("{\n \"format\": 2,\n"));
  CHECK(text.find(
            ",\n \"tensors\": {\n  \"model.safetensors\": {\n"
            "   \"empty\": {\"dtype\":\"F32\",\"shape\":[0,3],\"pieces\":[]},\n"
            "   \"w\": {\"dtype\":\"F32\",\"shape\":[4,3],\"pieces\":["
            "{\"begin\":[0,0],\"size\":[2,3],\"range\":[0,6],\"file\":\"a\",\"offset\":100},"
            "{\"begin\":[2,0],\"size\":[2,3],\"range\":[0,4],\"file\":\"b\",\"offset\":8},"
            "{\"begin\":[2,0],\"size\":[2,3],\"range\":[4,6],\"file\":\"c\",\"offset\":8}]}}},\n"
            " \"manifest_sha256\"") != std::string::npos);
  const test::TemporaryFolder folder;
  test::write_bytes(folder.path / "manifest.json", text);
  const Manifest read = read_manifest(folder.path);
  CHECK(read.format == 2);
  CHECK(render_tables(read.tensors) == render_tables(manifest.tensors));
  CHECK(piece_files(read) == std::set<std::string>{"a", "b", "c"});
  CHECK(tensor_files(read) == std::vector<std::string>{"model.safetensors"});
}

TEST_CASE("pieces that do not hold each element of a tensor once are refused") {
  CHECK(refused([](PieceTables&, FileEntries&) {}) == "nothing was thrown");
  const std::string tensor = "here: the tensor \"w\" of model.safetensors ";
  const auto check_w = [&](const std::string& found,
                           const std::function<void(CutTensor&)>& change) {
    CAPTURE(found);
    CHECK(refused([&](PieceTables& tables, FileEntries&) { change(w_of(tables)); }) ==
          tensor + found + kPieceRemedy);
  };
  check_w("has 12 elements, and its pieces 10", [](CutTensor& w) { w.pieces.pop_back(); });
  check_w("has 12 elements, and its pieces 11", [](CutTensor& w) { ++w.pieces[2].piece.first; });
  check_w("has an element in two pieces, in b and in c", [](CutTensor& w) {
    w.pieces[0].piece.last = 5;
    w.pieces[2].piece.first = 3;
  });
  check_w("has an element in two pieces, in a and in b", [](CutTensor& w) {
    w.pieces[0].piece = test::box({1, 0}, {2, 3});
  });
  check_w("has an element in two pieces", [](CutTensor& w) { w.pieces[1].piece.last = 6; });
  for (const Piece& outside :
       {test::box({3, 0}, {2, 3}), test::box({0, 0}, {2}), range_piece({2, 3}, 0, 7),
        range_piece({2, 3}, 3, 3), test::box({std::int64_t{1} << 62, 0}, {2, 3})}) {
    check_w("has a piece in a that does not lie within it",
            [&](CutTensor& w) { w.pieces[0].piece = outside; });
  }
  check_w("has two pieces in b", [](CutTensor& w) { w.pieces[2].file = "b"; });
  check_w("has a piece in d\\n, which is not listed",
          [](CutTensor& w) { w.pieces[2].file = "d\n"; });
  check_w("has 8 bytes from byte 13 of c on, which has 20",
          [](CutTensor& w) { w.pieces[2].offset = 13; });
  check_w("has 8 bytes from byte 0 of c on, which has 20",
          [](CutTensor& w) { w.pieces[2].offset = 0; });
  check_w("is of dtype \"F31\" and a shape that no file can hold",
          [](CutTensor& w) { w.dtype = "F31"; });
  check_w("is of dtype \"F32\" and a shape that no file can hold", [](CutTensor& w) {
    w.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  });
  check_w("has 4099 pieces, where at most 4096 are possible", [](CutTensor& w) {
    for (int i = 0; i < 4096; ++i) w.pieces.push_back(w.pieces[0]);
  });
}

TEST_CASE("a file belongs to one table, and stands in it or lies in the folder") {
  CHECK(refused([](PieceTables&, FileEntries& files) {
          files["model.safetensors"] = {1, "x"};
        }) == std::string("here: has model.safetensors both whole and in pieces") + kPieceRemedy);
  CHECK(refused([](PieceTables& tables, FileEntries&) {
          tables["other.safetensors"] = tables.at("model.safetensors");
        }) == std::string("here: has pieces of model.safetensors and of other.safetensors in a") +
                  kPieceRemedy);
  CHECK(refused([](PieceTables& tables, FileEntries&) {
          tables["../model.safetensors"] = tables.at("model.safetensors");
        }) == std::string("here: names the file \"../model.safetensors\"") + kPieceRemedy);
}

TEST_CASE("a table of another form is refused where it is wrong") {
  const std::string damaged = "\n  the file is damaged or was changed by hand: use another copy";
  const auto table = [](const std::string& tensor) { return "{\"m\":{\"w\":" + tensor + "}}"; };
  const auto piece = [&](const std::string& begin, const std::string& more) {
    return table(R"({"dtype":"F32","shape":[6],"pieces":[{"begin":)" + begin +
                 R"(,"size":[6],"range":)" + more + "}]}");
  };
  const std::string whole = R"([0,6],"file":"a","offset":8)";
  CHECK(refused_text(piece("[0]", whole)) == "nothing was thrown");
  CHECK(refused_text("[]") == "M: /tensors: is not an object" + damaged);
  CHECK(refused_text("{\"m\":[]}") == "M: /tensors/m: is not an object" + damaged);
  CHECK(refused_text(table("1")) == "M: /tensors/m/w: is not an object" + damaged);
  CHECK(refused_text(table(R"({"dtype":"F32","shape":[6],"pieces":{}})")) ==
        std::string("M: /tensors/m/w/pieces: is not a list") + kPieceRemedy);
  CHECK(refused_text(table(R"({"dtype":"F32","shape":[6],"pieces":[],"more":1})")) ==
        "M: /tensors/m/w/more: is not a key of this format" + damaged);
  for (const char* const wrong : {"[-1]", "[0.5]", "[18446744073709551615]", "0", "[\"0\"]"}) {
    CHECK(refused_text(piece(wrong, whole)) ==
          std::string("M: /tensors/m/w/pieces/0/begin: is not a list of whole numbers from 0 to "
                      "2^63 - 1") +
              kPieceRemedy);
  }
  CHECK(refused_text(piece("[0]", R"([0],"file":"a","offset":8)")) ==
        std::string("M: /tensors/m/w/pieces/0/range: has 1 numbers, where 2 are expected") +
            kPieceRemedy);
  CHECK(refused_text(piece("[0]", R"([0,6],"file":"a","offset":8,"more":1)")) ==
        "M: /tensors/m/w/pieces/0/more: is not a key of this format" + damaged);
  CHECK(refused_text(piece("[0]", R"([0,5],"file":"a","offset":8)")) ==
        std::string("M: the tensor \"w\" of m has 6 elements, and its pieces 5") + kPieceRemedy);
}
