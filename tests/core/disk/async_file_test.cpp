#include "lib/core/disk/async_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "tests/patterned_bytes.h"
#include "tests/temporary_folder.h"

namespace core = scaletrain::core;
using scaletrain::test::TemporaryFolder;
using Way = core::AsyncFile::Way;

namespace {

constexpr std::size_t kUnit = core::kAsyncUnit;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// From a page on, filled by `seed`.
class Memory {
 public:
  Memory(std::size_t bytes, unsigned seed)
      : memory_(static_cast<std::byte*>(std::aligned_alloc(kUnit, bytes))), bytes_(bytes) {
    scaletrain::test::fill_patterned(all(), seed);
  }
  std::span<std::byte> all() const { return {memory_.get(), bytes_}; }

 private:
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_;
};

core::Descriptor open_file(const std::filesystem::path& path, int flags = O_RDWR) {
  core::Descriptor fd(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0644));
  REQUIRE(fd);
  return fd;
}

std::vector<Way> ways() {
  const TemporaryFolder folder;
  try {
    const core::AsyncFile file("file", open_file(folder.path / "try"), Way::kRing);
    CHECK(file.has_ring());
    return {Way::kRing, Way::kThread, Way::kAuto};
  } catch (const core::StorageError& error) {
    MESSAGE("skipped: io_uring: ", error.what());
    return {Way::kThread, Way::kAuto};
  }
}

}  // namespace

TEST_CASE("ranges that are under way together are read back as they were written") {
  // In memory, too, where nothing goes past the cache.
  for (const std::filesystem::path& parent :
       {std::filesystem::temp_directory_path(), std::filesystem::path("/dev/shm")}) {
    for (const Way way : ways()) {
      CAPTURE(parent.string());
      CAPTURE(static_cast<int>(way));
      const TemporaryFolder folder;
      const auto path = parent / folder.path.filename().concat("-async");
      core::AsyncFile file(path, open_file(path), way);
      std::filesystem::remove(path);
      // More parts than are under way at a time, and of all sizes.
      const std::array<std::size_t, 5> sizes{kUnit, 3 * kUnit, std::size_t{9} << 20,
                                             (std::size_t{64} << 20) + kUnit, std::size_t{4} << 20};
      std::vector<Memory> written, found;
      std::vector<std::uint64_t> numbers;
      std::vector<std::int64_t> places;
      std::int64_t end = 0;
      for (const std::size_t size : sizes) {
        written.emplace_back(size, static_cast<unsigned>(written.size()));
        places.push_back(end);
        end += static_cast<std::int64_t>(size);
      }
      for (std::size_t i = sizes.size(); i-- > 0;) {
        numbers.push_back(file.write(places[i], written[i].all()));
      }
      for (const std::uint64_t number : numbers) file.wait(number);
      numbers.clear();
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        found.emplace_back(sizes[i], 77);
        numbers.push_back(file.read(places[i], found[i].all()));
      }
      for (std::size_t i = sizes.size(); i-- > 0;) {
        file.wait(numbers[i]);
        CHECK(scaletrain::test::same_bytes(found[i].all(), written[i].all()));
        file.wait(numbers[i]);  // is done
      }
    }
  }
}

TEST_CASE("what is under way when a file is closed is written") {
  for (const Way way : ways()) {
    const TemporaryFolder folder;
    const auto path = folder.path / "file";
    const Memory memory(std::size_t{12} << 20, 1);
    { core::AsyncFile(path, open_file(path), way).write(0, memory.all()); }
    CHECK(std::filesystem::file_size(path) == memory.all().size());
  }
}

TEST_CASE(
    "a read behind the end, a file that is not for writing and a disk without room are said") {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const Way way : ways()) {
    CAPTURE(static_cast<int>(way));
    const TemporaryFolder folder;
    const auto path = folder.path / "file";
    const Memory memory(4 * kUnit, 1);
    core::AsyncFile file("state", open_file(path), way);
    file.wait(file.write(0, memory.all().first(2 * kUnit)));
    const std::uint64_t beyond = file.read(0, memory.all());
    const std::uint64_t within = file.read(0, memory.all().first(kUnit));
    CHECK_THROWS_WITH_AS(file.wait(beyond),
                         "state: ends at byte 8192\n"
                         "  another program truncated it: give this job its own folder",
                         core::StorageError);
    file.wait(within);

    core::AsyncFile closed("state", open_file(path, O_RDONLY), way);
    CHECK_THROWS_WITH_AS(closed.wait(closed.write(0, memory.all())),
                         "state: cannot write: Bad file descriptor (EBADF)\n"
                         "  choose another folder or correct its permissions",
                         core::StorageError);

    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{.rlim_cur = 3 * kUnit, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const std::uint64_t number = file.write(0, memory.all());
    CHECK_THROWS_WITH_AS(file.wait(number),
                         "state: cannot write: File too large (EFBIG: the limit of file sizes is "
                         "ulimit -f)\n  raise the limit of file sizes (ulimit -f), or use a file "
                         "system for larger files",
                         core::StorageError);
    setrlimit(RLIMIT_FSIZE, &before);
    file.wait(file.write(0, memory.all()));  // goes on
  }
}
