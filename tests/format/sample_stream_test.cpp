#include "lib/format/sample_stream.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/format/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// "KEY EXTENSION=BYTES ...\n" of every sample; `read_bytes` counts what is read of the file.
std::string streamed(const std::string& members, std::int64_t* read_bytes = nullptr) {
  const std::string tar = members + tar_end(), name = "a.tar";
  std::string text;
  for_each_streamed(
      name, static_cast<std::int64_t>(tar.size()),
      [&](std::int64_t offset, std::span<std::byte> out) {
        if (!out.empty()) std::memcpy(out.data(), tar.data() + offset, out.size());
        if (read_bytes != nullptr) *read_bytes += static_cast<std::int64_t>(out.size());
      },
      [&](const StreamedSample& sample) {
        text += sample.key;
        for (const StreamedField& field : sample.fields) {
          text += fmt::format(" {}={}", field.extension, field.bytes);
        }
        text += "\n";
      });
  return text;
}

}  // namespace

TEST_CASE("samples are handed out with the bytes of all fields") {
  CHECK(streamed(tar_member("d/a.jpg", "image") + tar_member("d/a.cls", "7") +
                 tar_member("README", "text") + tar_member(".x.y", "") +
                 tar_entry({.name = "d/a.link", .type = '2'}, "") + tar_member("b.seg.PNG", "") +
                 tar_member("a.cls", "1")) == "d/a jpg=image cls=7\nb seg.PNG=\na cls=1\n");
  CHECK(streamed("").empty());
}

TEST_CASE("samples across the pieces that are read are whole, and little is read twice") {
  std::string members, expected;
  for (int i = 0; i < 100; ++i) {  // 100 samples of 70 kB: 7 MB, several pieces
    const std::string image(static_cast<std::size_t>(70'000 + 13 * i),
                            static_cast<char>('a' + i % 26));
    members +=
        tar_member(fmt::format("{}.jpg", i), image) + tar_member(fmt::format("{}.cls", i), "1");
    expected += fmt::format("{} jpg={} cls=1\n", i, image);
  }
  std::int64_t read_bytes = 0;
  CHECK(streamed(members, &read_bytes) == expected);
  CHECK(read_bytes < static_cast<std::int64_t>(members.size()) * 5 / 4);
  // One that is larger than a piece.
  const std::string large(3 << 20, 'x');
  CHECK(streamed(tar_member("1.jpg", large) + tar_member("1.cls", "2")) ==
        fmt::format("1 jpg={} cls=2\n", large));
}
