#include "lib/core/direct_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <string>
#include <vector>

#include "lib/core/disk.h"
#include "tests/temporary_folder.h"

namespace core = scaletrain::core;
using scaletrain::test::TemporaryFolder;

namespace {

constexpr std::size_t kMb = 1 << 20;

std::vector<std::byte> make_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 4099);
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
  return std::ranges::equal(std::as_bytes(std::span(found)), bytes);
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
