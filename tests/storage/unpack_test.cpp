#include "lib/storage/unpack.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "tests/storage/packed.h"
#include "tests/storage/remote_support.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;

namespace {

// A few bytes at a time; fails at the end where `fails`.
class TextStream : public Stream {
 public:
  explicit TextStream(std::string text, bool fails = false)
      : text_(std::move(text)), fails_(fails) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = std::min({out.size(), text_.size() - at_, std::size_t{100}});
    if (count == 0 && fails_) throw core::StorageError("s3://b/a", "went away");
    std::memcpy(out.data(), text_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
  bool fails_;
};

std::string unpacked(const std::string& bytes, std::int64_t most_bytes = 1 << 30) {
  TextStream stream(bytes);
  return read_all(*unpack(stream, "a.tar", {most_bytes}));
}

std::string fault_of(const std::string& bytes, std::int64_t most_bytes = 1 << 30) {
  return thrown_by([&] { unpacked(bytes, most_bytes); });
}

std::string sample_text() {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i * i % 977) + ",";
  return text;
}

}  // namespace

TEST_CASE("gzip and zstd come out as they went in, in several parts too") {
  const std::string text = sample_text();
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD}) {
    CAPTURE(filter);
    CHECK(unpacked(packed(text, filter)) == text);
    CHECK(unpacked(packed(text, filter) + packed("more", filter)) == text + "more");
    CHECK(unpacked(packed("", filter)).empty());
  }
}

TEST_CASE("what is cut, damaged or not compressed is reported") {
  const std::string text = sample_text();
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD}) {
    CAPTURE(filter);
    const std::string bytes = packed(text, filter);
    for (const std::size_t left : {bytes.size() / 2, bytes.size() - 9}) {
      CHECK(fault_of(bytes.substr(0, left)).starts_with("65 a.tar: does not decompress: "));
    }
  }
  std::string damaged = packed(text, ARCHIVE_FILTER_GZIP);
  for (std::size_t i = 0; i < 64; ++i) damaged[damaged.size() / 2 + i] ^= '\x5a';
  CHECK(fault_of(damaged).starts_with("65 a.tar: does not decompress: "));
  for (const std::string& other : {std::string("plain text"), std::string(20000, '\0')}) {
    CHECK(fault_of(other) ==
          "65 a.tar: is neither gzip nor zstd\n"
          "  use the extension .tar for an uncompressed tar; otherwise copy the file again");
  }
  CHECK(fault_of("").starts_with("65 a.tar: "));
}

TEST_CASE("a flipped bit that still decompresses is detected by gzip's checksum") {
  std::string noise;  // which does not compress: it is stored as it is
  for (std::uint64_t i = 0; noise.size() < 300'000; ++i) {
    const std::uint64_t number = i * 0x9e3779b97f4a7c15 ^ i * i * 0xbf58476d1ce4e5b9;
    noise.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  std::string bytes = packed(noise, ARCHIVE_FILTER_GZIP);
  CHECK(unpacked(bytes) == noise);
  bytes[bytes.size() / 2] ^= '\x10';
  CHECK(fault_of(bytes) ==
        "65 a.tar: does not decompress: its checksum is wrong\n"
        "  the shard is damaged or cut: copy or write it again");
}

TEST_CASE("more than is allowed is refused, however small it came") {
  const std::string zeros(64 << 20, '\0');
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD}) {
    const std::string bomb = packed(zeros, filter);
    CHECK(bomb.size() < 100'000);
    CHECK(
        fault_of(bomb, 1 << 20).starts_with("65 a.tar: has more than 1048576 bytes decompressed"));
    CHECK(unpacked(bomb, 64 << 20).size() == zeros.size());
  }
}

TEST_CASE("what is imported may be packed in other ways, or not at all") {
  const std::string text = sample_text();
  for (const int filter :
       {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_BZIP2}) {
    TextStream whole(packed(text, filter)), front(packed(text, filter));
    CHECK(read_all(*unpack(whole, "a", {1 << 30}, Packing::kAnyOrNone)) == text);
    CHECK(is_packed(front, "a"));
  }
  for (const std::string& plain : {text, std::string(), std::string(1024, '\0')}) {
    TextStream whole(plain), front(plain);
    CHECK(read_all(*unpack(whole, "a", {1 << 30}, Packing::kAnyOrNone)) == plain);
    CHECK(!is_packed(front, "a"));
  }
}

TEST_CASE("an error of the source is its own") {
  const std::string bytes = packed(sample_text(), ARCHIVE_FILTER_GZIP);
  for (const std::size_t there : {std::size_t{0}, bytes.size() / 2}) {
    TextStream stream(bytes.substr(0, there), true);
    CHECK(thrown_by([&] { read_all(*unpack(stream, "a.tar", {1 << 30})); }) ==
          "74 s3://b/a: went away");
  }
}
