#include "launcher/devices/rapl.h"

#include <doctest/doctest.h>

#include "tests/launcher/devices/fake_system.h"

namespace scaletrain::launcher {
namespace {

using doctest::Approx;

TEST_CASE("RAPL adds packages and memory, each once") {
  const FakeSystem system;
  system.set_zone("intel-rapl:0", "package-0", "1000000");
  system.set_zone("intel-rapl:1", "package-1", "2000000");
  system.set_zone("intel-rapl:0:0", "core", "1");
  system.set_zone("intel-rapl:0:1", "dram", "500000");
  system.set_zone("intel-rapl:2", "psys", "1");
  system.set_zone("intel-rapl-mmio:0", "package-0", "1");
  Rapl rapl(system.root());
  rapl.read();
  CHECK(rapl.cpu_j() == 0);
  CHECK(rapl.why_not().empty());
  for (const char* const counted_elsewhere : {"intel-rapl:0:0", "intel-rapl:2"}) {
    system.set(std::string("sys/class/powercap/") + counted_elsewhere + "/energy_uj", "9000000");
  }
  system.set_zone("intel-rapl:0", "package-0", "4500000");  // 3.5 J
  system.set_zone("intel-rapl:1", "package-1", "2250000");  // 0.25 J
  system.set_zone("intel-rapl:0:1", "dram", "500001");      // 1 uJ
  system.set_zone("intel-rapl-mmio:0", "package-0", "3500001");
  rapl.read();
  CHECK(*rapl.cpu_j() == Approx(3.75));
  CHECK(*rapl.memory_j() == Approx(1e-6));
}

TEST_CASE("a RAPL counter that wraps around continues from 0") {
  const FakeSystem system;
  system.set_zone("intel-rapl:0", "package-0", "262143000000");
  Rapl rapl(system.root());
  rapl.read();
  system.set_zone("intel-rapl:0", "package-0", "1000000");
  rapl.read();
  CHECK(*rapl.cpu_j() == Approx(0.328850 + 1));  // to the end of the range, and from 0
  system.set_zone("intel-rapl:0", "package-0", "3000000");
  rapl.read();
  CHECK(*rapl.cpu_j() == Approx(3.328850));
}

TEST_CASE("energy is not available, and never 0, if RAPL is absent or cannot be read") {
  const FakeSystem system;
  Rapl rapl(system.root());
  rapl.read();
  CHECK_FALSE(rapl.cpu_j().has_value());
  CHECK(rapl.why_not() == "RAPL is absent");
  system.set_zone("intel-rapl:0", "package-0", "1");
  const auto counter = system.root() / "sys/class/powercap/intel-rapl:0/energy_uj";
  std::filesystem::remove(counter);
  std::filesystem::create_directory(counter);  // root can read any file
  rapl.read();
  CHECK_FALSE(rapl.cpu_j().has_value());
  CHECK(rapl.why_not() == "RAPL cannot be read: Is a directory (EISDIR)");
}

}  // namespace
}  // namespace scaletrain::launcher
