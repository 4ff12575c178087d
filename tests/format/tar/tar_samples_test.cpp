#include "lib/format/tar/tar_samples.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

const std::string kShard = "a.tar";
constexpr const char* kLayout =
    "\n  a sample is one image (.jpg, .jpeg, .png, .webp or .rgb8) and one label (.cls) with the "
    "same name, next to one another";

// "KEY=LABEL " of every sample; of a list of classes the place of its member in brackets.
std::string samples_of(const std::string& members, const std::vector<std::string>& excluded = {}) {
  const std::string tar = members + tar_end();
  const ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    if (!out.empty()) std::memcpy(out.data(), tar.data() + offset, out.size());
  };
  std::string text;
  const auto add = [&](const TarSample& sample) {
    text += sample.label < 0 ? fmt::format("{}=[{}] ", sample.key, sample.labels_begin)
                             : fmt::format("{}={} ", sample.key, sample.label);
  };
  for_each_sample(kShard, static_cast<std::int64_t>(tar.size()), read, add, excluded);
  return text;
}

std::string samples_error(const std::string& members) {
  return message_of([&] { samples_of(members); });
}

std::string label(const std::string& text) {
  return tar_member("k.png", "p") + tar_member("k.cls", text);
}

}  // namespace

TEST_CASE("a key is the path up to the first dot of the file name") {
  const auto name = split_sample_name("a.b/c.seg.PNG");
  CHECK(name->key == "a.b/c");
  CHECK(name->extension == "seg.png");
  CHECK(split_sample_name("x.jpg")->key == "x");
  CHECK(!split_sample_name("README"));
  CHECK(!split_sample_name(".hidden.png"));
  CHECK(!split_sample_name("folder/.hidden"));
  CHECK(!split_sample_name("folder.d/"));
}

TEST_CASE("samples are an image and a label, in either order, with other members beside them") {
  CHECK(samples_of(tar_member("1.png", "p") + tar_member("1.cls", "3") +  //
                   tar_member("2.cls", " 0\n") + tar_member("2.json", "{}") +
                   tar_member("2.JPEG", "j") + tar_member(".x", "") +
                   tar_entry({.name = "3.png", .type = '2'}, "") + tar_member("README", "text") +
                   tar_member("d/2.jpg", "j") + tar_member("d/2.cls", "2147483647")) ==
        "1=3 2=0 d/2=2147483647 ");
  CHECK(samples_of("").empty());
}

TEST_CASE("a hard link to a member before it is that member") {
  const auto link = [](const std::string& name, const std::string& target) {
    return tar_entry({.name = name, .type = '1', .link = target}, "");
  };
  const std::string first = tar_member("1.png", "p") + tar_member("1.cls", "3");
  CHECK(samples_of(first + link("2.png", "1.png") + link("2.cls", "1.cls")) == "1=3 2=3 ");
  CHECK(samples_of(tar_member("1.png", "p") + tar_member("1.cls", "[3]") +
                   tar_member("2.png", "p") + link("2.cls", "1.cls")) == "1=[1024] 2=[1024] ");
  CHECK(samples_error(first + link("2.png", "0.png") + link("2.cls", "1.cls")) ==
        std::string("a.tar: 2: has no image") + kLayout);
}

TEST_CASE("incomplete samples are named") {
  CHECK(samples_error(tar_member("1.png", "p") + tar_member("2.png", "p") +
                      tar_member("2.cls", "3")) == std::string("a.tar: 1: has no label") + kLayout);
  CHECK(samples_error(tar_member("1.cls", "1")) == std::string("a.tar: 1: has no image") + kLayout);
  CHECK(samples_error(tar_member("1.txt", "1")) ==
        std::string("a.tar: 1: has no image and no label") + kLayout);
  CHECK(samples_error(tar_member("1.png", "p") + tar_member("1.jpg", "p") +
                      tar_member("1.cls", "1")) ==
        std::string("a.tar: 1: has two images") + kLayout);
}

TEST_CASE("what an incomplete sample has instead is named, with what takes it") {
  CHECK(
      samples_error(tar_member("1.png", "p") + tar_member("1.json", "{}")) ==
      "a.tar: 1: has no label\n  it has .json: in training data.label names what holds the class, "
      "as {\"field\": \"json\", \"key\": \"label\"}; scaletrain data import tar --label-field or "
      "--label-key writes .cls");
  CHECK(samples_error(tar_member("cat/1.png", "p")) ==
        "a.tar: cat/1: has no label\n  where its folder is its class, data.label \"folder\" says "
        "so to "
        "training, and scaletrain data import tar --class-from-folder writes .cls");
  CHECK(samples_error(tar_member("1.tif", "p") + tar_member("1.cls", "1")) ==
        "a.tar: 1: has no image\n  scaletrain data import tar makes PNGs of .bmp, .gif, .tif and "
        ".tiff");
}

TEST_CASE("a tar sorted by extension is refused for its keys, not taken for half samples") {
  CHECK(samples_error(tar_member("1.png", "p") + tar_member("2.png", "p") +
                      tar_member("1.cls", "1") + tar_member("2.cls", "2")) ==
        std::string("a.tar: 1: the key is used again after another sample") + kLayout);
}

TEST_CASE("a repeated member is refused") {
  CHECK(samples_error(tar_member("1.png", "p") + tar_member("1.PNG", "p") +
                      tar_member("1.cls", "1")) ==
        "a.tar: 1.PNG: occurs twice\n  names in a shard must be unique: write the shard again");
}

TEST_CASE("a git-lfs pointer in place of a label is named") {
  CHECK(samples_error(label("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n")) ==
        "a.tar: k.cls: is a git-lfs pointer, not the file itself\n"
        "  fetch the file: git lfs pull, in the repository that it is from");
}

TEST_CASE("a label is a whole number from 0 to 2^31 - 1 in text, or a list of them") {
  const std::string remedy =
      "\n  a label is a whole number from 0 to 2147483647 in text, or a list of them: [1, 5]";
  for (const std::string text :
       {"", "cat", "-1", "1.5", "2147483648", "+1", "0x1", "1 cat", "1,", ",1", "1,,2", "[1, -5]",
        "[1 5]", "[1", "1]", "[[1]]", "[1,]", R"(["1"])", "{}"}) {
    CHECK(samples_error(label(text)) ==
          fmt::format("a.tar: k.cls: label \"{}\" is not a class number", text) + remedy);
  }
  CHECK(samples_error(label("\x1b[2J")) ==
        "a.tar: k.cls: label \"\\x1b[2J\" is not a class number" + remedy);
  CHECK(samples_error(label(std::string(10'000'000, '1'))) ==
        "a.tar: k.cls: a label of 10000000 bytes\n  a label has at most 65536 bytes");
  CHECK(samples_of(label("007\r\n")) == "k=7 ");
  CHECK(samples_of(label("[1, 5]")) == "k=[1024] ");  // behind the header and the block of k.png
  CHECK(samples_of(tar_member("k.cls", "1 5") + tar_member("k.png", "p")) == "k=[0] ");
}

TEST_CASE("excluded keys are passed over, whatever is wrong with them") {
  const std::string good = tar_member("1.png", "p") + tar_member("1.cls", "3");
  CHECK(samples_of(good + tar_member("a.png", "p") + tar_member("b.cls", "x") +
                       tar_member("b.cls", "9") + tar_member("a.cls", "1"),
                   {"a", "b"}) == "1=3 ");
  CHECK(samples_of(tar_member("a.png", "p") + good, {"a", "b"}) == "1=3 ");
}

TEST_CASE("many keys are distinguished") {
  std::string members;
  for (int i = 0; i < 3000; ++i) {  // above the first size of the table of keys
    members +=
        tar_member(fmt::format("{}.png", i), "p") + tar_member(fmt::format("{}.cls", i), "1");
  }
  const std::string found = samples_of(members);
  CHECK(std::count(found.begin(), found.end(), '=') == 3000);
  CHECK(samples_error(members + tar_member("7.png", "p"))
            .starts_with("a.tar: 7: the key is used again"));
}
