#include "launcher/plan/memory_fit.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("a rank fits if all its shares together do") {
  MemoryFit memory{.shares = {{"parameters", 30e9}, {"activations", 40e9}}, .capacity = 80e9};
  CHECK(memory.total() == 70e9);
  CHECK(memory.margin() == 10e9);
  CHECK(memory.fits());
  memory.shares.push_back({"reserve", 10.1e9});
  CHECK(!memory.fits());
}

TEST_CASE("a GPU reserves memory for communicators and for gaps between blocks") {
  const double alone = reserve_bytes(true, 0, 0);
  CHECK(reserve_bytes(true, 2, 0) > alone);
  CHECK(reserve_bytes(true, 0, 10e9) == doctest::Approx(alone + 0.4e9));
  CHECK(reserve_bytes(false, 2, 10e9) < alone);
}

TEST_CASE("the memory of a machine is limited by the cgroups of this process") {
  const test::TemporaryFolder folder;
  const fs::path root = folder.path;
  CHECK(machine_memory_bytes(root) == 0);
  write_file(root / "proc/meminfo", "MemFree:  1 kB\nMemTotal:       8000 kB\n");
  CHECK(machine_memory_bytes(root) == 8000 * 1024);
  write_file(root / "proc/self/cgroup", "0::/job/step\n");
  write_file(root / "sys/fs/cgroup/job/step/memory.max", "max\n");
  CHECK(machine_memory_bytes(root) == 8000 * 1024);
  write_file(root / "sys/fs/cgroup/job/memory.max", "4096000\n");
  CHECK(machine_memory_bytes(root) == 4096000);
}

}  // namespace scaletrain::launcher
