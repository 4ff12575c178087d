#include "lib/format/pt/pt_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "lib/core/error.h"
#include "tests/format/pt/pt_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

using test::pickle_of;
using test::pickled_dict;
using test::pickled_view;

// The floats 0 to 5, as tensors in them name them.
std::string six_floats() {
  std::string bytes;
  for (int i = 0; i < 6; ++i) {
    const auto value = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

std::vector<float> floats_of(const PtFile& file, const PtTensor& tensor, std::int64_t offset = 0) {
  const std::int64_t bytes = pt_tensor_bytes(tensor) - offset;
  std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
  file.read(tensor, std::as_writable_bytes(std::span(values)), offset);
  return values;
}

std::string file_problem(const std::string& bytes, const std::string& remedy = kZipRemedy) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("a.pt", bytes);
  try {
    const PtFile file(path);
    for (const PtTensor& tensor : file.tensors()) floats_of(file, tensor);
  } catch (const core::CheckpointError& error) {
    CHECK(error.place() == path);
    CHECK(error.remedy() == remedy);
    return error.found();
  }
  return "nothing";
}

constexpr const char* kAgain =
    "open it in Python and save it again: torch.save(torch.load(FILE, weights_only=True), FILE)";

std::string changed(const std::string& name, const std::string& contents) {
  test::ZipContents entries{{"a/data.pkl", pickle_of(pickled_view({}))},
                            {"a/data/0", six_floats()},
                            {"a/version", "3"},
                            {"a/byteorder", "little"}};
  for (auto& entry : entries) {
    if (entry.first == name) entry.second = contents;
  }
  return test::zip_of(entries);
}

}  // namespace

TEST_CASE("a view is read as a contiguous tensor") {
  struct Case {
    test::PickledView view;
    std::vector<float> values;
  };
  const std::vector<Case> cases{{{}, {0, 1, 2, 3, 4, 5}},
                                {{.shape = {3, 2}, .strides = {1, 3}}, {0, 3, 1, 4, 2, 5}},
                                {{.first = 1, .shape = {2, 2}, .strides = {3, 1}}, {1, 2, 4, 5}},
                                {{.first = 5, .shape = {}, .strides = {}}, {5}},
                                {{.first = 2, .shape = {2, 2}, .strides = {0, 1}}, {2, 3, 2, 3}},
                                {{.shape = {3}, .strides = {2}}, {0, 2, 4}},
                                {{.first = 1, .shape = {1, 3, 1}, .strides = {9, 1, 9}}, {1, 2, 3}},
                                {{.shape = {0, 2}, .strides = {2, 1}}, {}}};
  std::vector<std::pair<std::string, std::string>> items;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    items.emplace_back(std::to_string(i), pickled_view(cases[i].view));
  }
  const test::TemporaryFolder folder;
  const std::string path =
      folder.write("a.pt", test::pt_of(pickle_of(pickled_dict(items)), {{"0", six_floats()}}));
  const PtFile file(path);
  REQUIRE(file.tensors().size() == cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const PtTensor& tensor = file.tensors()[i];
    const std::vector<float>& values = cases[i].values;
    CHECK(floats_of(file, tensor) == values);
    for (std::size_t from = 0; from < values.size(); ++from) {
      const std::vector<float> rest(values.begin() + static_cast<std::ptrdiff_t>(from),
                                    values.end());
      CHECK(floats_of(file, tensor, static_cast<std::int64_t>(from * sizeof(float))) == rest);
    }
  }
  std::array<std::byte, 4> out{};
  CHECK_THROWS_AS(file.read(file.tensors()[0], out, 24), core::InternalError);
  CHECK_THROWS_AS(file.read(file.tensors()[0], out, -4), core::InternalError);
  CHECK_THROWS_AS(file.read(file.tensors()[0], out, 2), core::InternalError);
  CHECK_THROWS_AS(file.read(file.tensors()[0], std::span(out).first(3)), core::InternalError);
}

TEST_CASE("a file that is not as torch.save writes it is refused") {
  CHECK(file_problem(changed("", "")) == "nothing");
  CHECK(file_problem("") == "is not a file of torch.save");
  CHECK(file_problem("{}") == "is not a file of torch.save");
  CHECK(file_problem("\x80\x02\x8a\x0al", kAgain) ==
        "was saved by PyTorch before 1.6, or without its zip form");
  CHECK(file_problem(test::zip_of({{"a/version", "3"}})) ==
        "has 0 entries called data.pkl, where 1 is expected");
  CHECK(file_problem(test::zip_of({{"a/data.pkl", "N."}, {"b/data.pkl", "N."}})) ==
        "has 2 entries called data.pkl, where 1 is expected");
  CHECK(file_problem(test::zip_of({{"a/data.pkl", "N."}})) == "has no entry \"a/version\"");
  CHECK(file_problem(changed("a/version", "11"), kAgain) ==
        "has the version \"11\", where 1 to 10 are read");
  CHECK(file_problem(changed("a/version", "three"), kAgain) ==
        "has the version \"three\", where 1 to 10 are read");
  CHECK(file_problem(changed("a/version", std::string(101, '3'))) ==
        "entry \"a/version\" has 101 bytes, where at most 100 are read");
  CHECK(file_problem(changed("a/byteorder", "big"), kAgain) ==
        "has the byte order \"big\"; only \"little\" is read");
  CHECK(file_problem(changed("a/data/0", "abc")) ==
        "storage \"a/data/0\" has 24 bytes by byte 94 of the pickle, the archive has 3");
  CHECK(file_problem(test::pt_of(pickle_of(pickled_view({.key = "../x"})), {})) ==
        "storage \"a/data/../x\" has 24 bytes by byte 97 of the pickle, and is not there");
  CHECK(file_problem(test::zip_of({{"a/data.pkl", "N."}, {"a/constants.pkl", "N."}}),
                     "save the state_dict() of the model by torch.save, or train it as model "
                     "\"torchscript\"") == "is a TorchScript program: it holds code");
}

TEST_CASE("an entry with another checksum is refused when it is read") {
  const std::string sound = changed("", "");
  struct Case {
    std::string text, entry;
  };
  for (const auto& [text, entry] :
       std::vector<Case>{{"cpu", "a/data.pkl"}, {six_floats(), "a/data/0"}, {"3PK", "a/version"}}) {
    std::string damaged = sound;
    damaged[damaged.find(text)] ^= 1;
    const std::string problem = file_problem(damaged);
    CHECK(problem.starts_with(fmt::format("entry \"{}\" has the CRC-32 ", entry)));
  }
  // A view of a part is given out only where the whole storage is right.
  std::string damaged =
      test::pt_of(pickle_of(pickled_view({.shape = {2}, .strides = {1}})), {{"0", six_floats()}});
  damaged[damaged.find(six_floats()) + 20] ^= 1;
  CHECK(file_problem(damaged).starts_with("entry \"a/data/0\" has the CRC-32 "));
  // A writer that computed none wrote 0.
  CHECK(file_problem(test::zip_of({{"a/data.pkl", pickle_of(pickled_view({}))},
                                   {"a/data/0", six_floats()},
                                   {"a/version", "3"}},
                                  false)) == "nothing");
}

TEST_CASE("an entry that is compressed is refused") {
  std::string packed = changed("", "");
  packed.replace(8, 2, test::little_endian(8, 2));
  packed.replace(packed.find("PK\x01\x02") + 10, 2, test::little_endian(8, 2));
  CHECK(file_problem(packed,
                     "torch.save compresses nothing: unpack the archive and pack it without "
                     "compression") == "entry \"a/data.pkl\" is compressed");
}

TEST_CASE("what may be of torch.save is known by its first bytes") {
  const test::TemporaryFolder folder;
  CHECK(looks_like_pt(folder.write("a", changed("", ""))));
  CHECK(looks_like_pt(folder.write("b", "\x80\x02\x8a\x0al")));
  CHECK(!looks_like_pt(folder.write("e", std::string("\x80\2\0\0\0\0\0\0{", 9))));  // safetensors
  CHECK(!looks_like_pt(folder.write("c", "{}")));
  CHECK(!looks_like_pt(folder.write("d", "")));
}
