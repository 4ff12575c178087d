#include "lib/storage/block_reader.h"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "lib/core/error.h"
#include "tests/storage/remote_support.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t kPiece = 10;
constexpr std::size_t kKept = 6;

// 95 bytes, and how often each offset was asked for.
class CountedObject : public Object {
 public:
  CountedObject() {
    for (int i = 0; i < 95; ++i) bytes_ += static_cast<char>(' ' + i);
  }

  const std::string& bytes() const { return bytes_; }
  Identity identity() const override { return {.bytes = static_cast<std::int64_t>(bytes_.size())}; }
  void read(std::int64_t offset, std::span<std::byte> out) const override {
    const auto begin = static_cast<std::size_t>(offset);
    if (begin + out.size() > bytes_.size()) throw scaletrain::core::DataError("object", "ends");
    {
      const std::lock_guard lock(mutex_);
      ++asked_[offset];
    }
    if (offset == fails_at) throw scaletrain::core::StorageError("object", "is gone");
    const auto from = std::as_bytes(std::span(bytes_)).subspan(begin, out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }
  std::map<std::int64_t, int> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  std::int64_t fails_at = -1;

 private:
  std::string bytes_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, int> asked_;
};

std::string read_piece(const BlockReader& reader, std::int64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  reader.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

TEST_CASE("every byte is the object's, and a piece is asked for once") {
  const CountedObject object;
  std::string text;
  {
    const BlockReader reader(object, kKept, kPiece);
    for (std::int64_t i = 0; i < 95; i += 3) {
      text += read_piece(reader, i, static_cast<std::size_t>(std::min<std::int64_t>(3, 95 - i)));
    }
    CHECK(read_piece(reader, 48, 40) == object.bytes().substr(48, 40));  // over pieces
  }
  CHECK(text == object.bytes());
  for (const auto& asked : object.asked()) {
    if (asked.first < 40) CHECK_MESSAGE(asked.second == 1, asked.first);
  }
}

TEST_CASE("threads that follow one another share the pieces") {
  const CountedObject object;
  std::atomic<int> wrong = 0;
  {
    const BlockReader reader(object, kKept, kPiece);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (std::int64_t i = 0; i < 50; ++i) {
          if (read_piece(reader, i, 1) != object.bytes().substr(static_cast<std::size_t>(i), 1)) {
            ++wrong;
          }
        }
      });
    }
  }
  CHECK(wrong == 0);
  // Five pieces and the one fetched ahead are as many as are kept.
  for (const auto& asked : object.asked()) CHECK_MESSAGE(asked.second == 1, asked.first);
}

TEST_CASE("one read far inside fetches one piece") {
  const CountedObject object;
  {
    const BlockReader reader(object, kKept, kPiece);
    CHECK(read_piece(reader, 53, 2) == object.bytes().substr(53, 2));
  }
  CHECK(object.asked() == std::map<std::int64_t, int>{{50, 1}});
}

TEST_CASE("what the object throws comes through, and only where it is read") {
  CountedObject object;
  object.fails_at = 20;
  const BlockReader reader(object, kKept, kPiece);
  CHECK(read_piece(reader, 0, 20) == object.bytes().substr(0, 20));  // 20 is fetched ahead
  CHECK(thrown_by([&] { read_piece(reader, 25, 1); }) == "74 object: is gone");
  CHECK(thrown_by([&] { read_piece(reader, 90, 6); }) == "65 object: ends");
}
