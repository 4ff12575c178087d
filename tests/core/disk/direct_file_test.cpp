#include "lib/core/disk/direct_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "tests/patterned_bytes.h"
#include "tests/temporary_folder.h"

namespace core = scaletrain::core;
using scaletrain::test::TemporaryFolder;

namespace {

constexpr std::size_t kMb = 1 << 20;

std::vector<std::byte> make_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  scaletrain::test::fill_patterned(bytes, 0);
  return bytes;
}

std::unique_ptr<core::DirectFile> create(const std::filesystem::path& path) {
  core::Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  REQUIRE(fd);
  if (!core::begin_direct(fd.get())) return nullptr;
  return std::make_unique<core::DirectFile>(path, std::move(fd));
}

// A temporary folder in memory has no cache to write past.
struct Folder : TemporaryFolder {
  bool can_write_past_the_cache() { return create(path / "try") != nullptr; }
};

bool has(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  const std::string found =
      core::read_file(path, static_cast<std::int64_t>(bytes.size()) + 1, core::ExitCode::kData);
  return scaletrain::test::same_bytes(std::as_bytes(std::span(found)), bytes);
}

}  // namespace

TEST_CASE("a file holds what was written, whatever its size and the sizes of the pieces") {
  Folder folder;
  if (!folder.can_write_past_the_cache()) {
    MESSAGE("skipped: this file system has no direct writes");
    return;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, 4 * kMb - 1,
                                 4 * kMb, 4 * kMb + 5000, 17 * kMb + 4096, 20 * kMb + 1}) {
    for (const std::size_t piece : {std::size_t{1000}, 512 * std::size_t{1024}, 32 * kMb}) {
      CAPTURE(size);
      CAPTURE(piece);
      const std::vector<std::byte> bytes = make_bytes(size);
      const auto path = folder.path / "file";
      const auto file = create(path);
      for (std::span<const std::byte> left(bytes); !left.empty();) {
        const auto now = left.first(std::min(piece, left.size()));
        file->write(now);
        left = left.subspan(now.size());
      }
      file->sync();
      CHECK(has(path, bytes));
    }
  }
}

TEST_CASE("memory that is lent is written in its place among what is copied, wherever it lies") {
  Folder folder;
  if (!folder.can_write_past_the_cache()) return;
  constexpr std::size_t kPage = 4096;
  struct Row {
    std::size_t header, begin;  // bytes that are copied first, and where the memory begins
  };
  for (const Row& row : {Row{0, 0}, Row{kPage, 0}, Row{kPage, 8}, Row{100, 0}, Row{5 * kMb, 0}}) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, kPage, 4 * kMb + 5000, 9 * kMb}) {
      for (const std::size_t piece : {std::size_t{3000}, 512 * std::size_t{1024}, 32 * kMb}) {
        CAPTURE(row.header);
        CAPTURE(row.begin);
        CAPTURE(size);
        CAPTURE(piece);
        std::vector<std::byte> expected = make_bytes(row.header);
        std::vector<std::byte> memory(size + row.begin + kPage);
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        const auto lent =
            std::span(memory).subspan((kPage - address % kPage) % kPage + row.begin, size);
        const std::vector<std::byte> bytes = make_bytes(size);
        std::ranges::copy(bytes, lent.begin());
        const std::vector<std::byte> more = make_bytes(700);

        const auto path = folder.path / "file";
        const auto file = create(path);
        file->write(expected);
        for (std::span<const std::byte> left = lent; !left.empty();) {
          const auto now = left.first(std::min(piece, left.size()));
          file->write_lasting(now);
          left = left.subspan(now.size());
        }
        file->write(more);
        file->write_lasting(lent.first(size / 2));
        file->sync();
        expected.insert(expected.end(), bytes.begin(), bytes.end());
        expected.insert(expected.end(), more.begin(), more.end());
        expected.insert(expected.end(), lent.begin(), lent.begin() + std::ssize(lent) / 2);
        CHECK(has(path, expected));
      }
    }
  }
}

TEST_CASE("a file that nobody synced is closed, and nothing waits") {
  Folder folder;
  if (!folder.can_write_past_the_cache()) return;
  const std::vector<std::byte> bytes = make_bytes(9 * kMb);
  const auto path = folder.path / "file";
  {
    const auto file = create(path);
    file->write(bytes);
  }
  CHECK(std::filesystem::file_size(path) <= 8 * kMb);  // whole blocks, as far as the thread came
}

TEST_CASE("a disk writes large files past the cache, and others through it") {
  Folder folder;
  if (!folder.can_write_past_the_cache()) return;
  const auto is_direct = [&](std::int64_t expected_bytes) {
    const auto path = folder.path / "file";
    const auto file = core::system_disk().create(path, expected_bytes);
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry.path(), gone) != path) continue;
      const int flags = ::fcntl(std::stoi(entry.path().filename().string()), F_GETFL);
      return (flags & O_DIRECT) != 0;
    }
    FAIL("the file is not open");
    return false;
  };
  CHECK(!is_direct(0));
  CHECK(!is_direct(15 * static_cast<std::int64_t>(kMb)));
  CHECK(is_direct(16 * static_cast<std::int64_t>(kMb)));
}

TEST_CASE("a write that fails is thrown by a later call, with path and reason") {
  Folder folder;
  if (!folder.can_write_past_the_cache()) return;
  struct rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {.rlim_cur = 6 * kMb, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message = "nothing was thrown";
  try {
    const std::vector<std::byte> bytes = make_bytes(30 * kMb);
    const auto file = create(folder.path / "file");
    file->write(bytes);
    file->sync();
  } catch (const core::StorageError& error) {
    message = error.what();
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, ignored);
  CHECK(message.find((folder.path / "file").string() + ": cannot write: ") == 0);
}
