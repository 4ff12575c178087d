#include "launcher/platform/numa.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

void put_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

// Two sockets of two NUMA nodes of four cores of two threads: node n has the CPUs 4n..4n+3 and
// their siblings 16 higher. Cores 4n, 4n+1 share one last cache, 4n+2, 4n+3 another. GPU g lies on
// node g / 2; the address of a GPU is 0000:0g:00.0.
class Machine {
 public:
  Machine() {
    for (int node = 0; node < 4; ++node) {
      put_text(root_.path / fmt::format("devices/system/node/node{}/cpulist", node),
               fmt::format("{}-{},{}-{}", 4 * node, 4 * node + 3, 4 * node + 16, 4 * node + 19));
    }
    put_text(root_.path / "devices/system/node/possible", "0-3");
    for (int cpu = 0; cpu < 32; ++cpu) add_cpu(cpu);
    for (int gpu = 0; gpu < 8; ++gpu) {
      gpus.push_back(fmt::format("0000:0{}:00.0", gpu));
      put_text(root_.path / "bus/pci/devices" / gpus.back() / "numa_node", std::to_string(gpu / 2));
    }
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // The CPUs of every worker, "0-3,16-19 | ...".
  std::string bind(const std::string& mode, int workers, const std::vector<std::string>& devices,
                   const std::string& allowed = "0-31") const {
    std::string result;
    try {
      for (const auto& cpus :
           bind_workers(mode, workers, devices, parse_cpu_list(allowed), root_.path)) {
        result += (result.empty() ? "" : " | ") + cpu_list(cpus);
      }
    } catch (const core::UsageError& error) {
      return error.what();
    }
    return result;
  }

  std::vector<std::string> gpus;

 private:
  void add_cpu(int cpu) const {
    const int core = cpu % 16, complex = core / 2 * 2;
    const fs::path folder = root_.path / fmt::format("devices/system/cpu/cpu{}", cpu);
    put_text(folder / "topology/physical_package_id", std::to_string(core / 8));
    put_text(folder / "topology/thread_siblings_list", fmt::format("{},{}", core, core + 16));
    put_text(folder / "cache/index0/type", "Data");
    put_text(folder / "cache/index0/level", "1");
    put_text(folder / "cache/index0/shared_cpu_list", fmt::format("{},{}", core, core + 16));
    put_text(folder / "cache/index1/type", "Instruction");
    put_text(folder / "cache/index1/level", "4");
    put_text(folder / "cache/index1/shared_cpu_list", "0-31");
    put_text(folder / "cache/index3/type", "Unified");
    put_text(folder / "cache/index3/level", "3");
    put_text(folder / "cache/index3/shared_cpu_list",
             fmt::format("{}-{},{}-{}", complex, complex + 1, complex + 16, complex + 17));
  }

  test::TemporaryFolder root_;
};

TEST_CASE("lists of CPUs are read and written as /sys has them") {
  CHECK(parse_cpu_list("0-2,4,6-7") == std::set<int>{0, 1, 2, 4, 6, 7});
  CHECK(parse_cpu_list("").empty());
  CHECK(parse_cpu_list("3,x,5") == std::set<int>{3});
  CHECK(cpu_list({0, 1, 2, 4, 6, 7}) == "0-2,4,6-7");
  CHECK(cpu_list({5}) == "5");
}

TEST_CASE("node: the CPUs of the GPU's NUMA node; socket: of its socket's nodes") {
  const Machine machine;
  CHECK(machine.bind("node", 3, machine.gpus) == "0-3,16-19 | 0-3,16-19 | 4-7,20-23");
  CHECK(machine.bind("socket", 1, {machine.gpus[5]}) == "8-15,24-31");
}

TEST_CASE("exclusive: the cores of a node are divided among its GPUs") {
  const Machine machine;
  CHECK(machine.bind("exclusive", 2, machine.gpus) == "0-1,16-17 | 2-3,18-19");
  // Three GPUs on four cores: the first has one more.
  const std::vector<std::string> three{machine.gpus[0], machine.gpus[1], machine.gpus[0]};
  CHECK(machine.bind("exclusive", 3, three) == "0-1,16-17 | 2,18 | 3,19");
  CHECK(machine.bind("exclusive", 2, machine.gpus, "0,16") ==
        "--numa-binding: 2 workers share the 1 cores of NUMA node 0\n"
        "  start fewer workers, or use node or socket");
}

TEST_CASE("core-complex: one last cache each, the larger first, again from the start") {
  const Machine machine;
  CHECK(machine.bind("core-complex", 2, machine.gpus) == "0-1,16-17 | 2-3,18-19");
  CHECK(machine.bind("core-complex", 2, machine.gpus, "1-31") == "2-3,18-19 | 1,16-17");
  const std::vector<std::string> three{machine.gpus[0], machine.gpus[1], machine.gpus[0]};
  CHECK(machine.bind("core-complex", 3, three) == "0-1,16-17 | 2-3,18-19 | 0-1,16-17");
}

TEST_CASE("without GPUs the workers are spread over the nodes") {
  const Machine machine;
  CHECK(machine.bind("node", 4, {}) == "0-3,16-19 | 4-7,20-23 | 8-11,24-27 | 12-15,28-31");
  CHECK(machine.bind("node", 2, {}) == "0-3,16-19 | 8-11,24-27");
  CHECK(machine.bind("exclusive", 8, {}, "0-15") ==
        "0-1 | 2-3 | 4-5 | 6-7 | 8-9 | 10-11 | 12-13 | 14-15");
  // Nodes that this process may not use are left out.
  CHECK(machine.bind("node", 2, {}, "4-11") == "4-7 | 8-11");
}

TEST_CASE("only CPUs that this process may run on are used") {
  const Machine machine;
  CHECK(machine.bind("node", 1, machine.gpus, "2-9") == "2-3");
  CHECK(machine.bind("node", 1, machine.gpus, "8-9") ==
        "--numa-binding: this process may not run on any CPU of NUMA node 0\n"
        "  ask for CPUs near the GPUs, or leave the flag out");
}

TEST_CASE("a kernel that knows no nodes has one") {
  CHECK(bind_workers("node", 2, {}, {0, 1}, "/nowhere") ==
        std::vector<std::vector<int>>{{0, 1}, {0, 1}});
}

TEST_CASE("another mode and too few GPUs are refused") {
  const Machine machine;
  CHECK(machine.bind("nodes", 1, {}) ==
        "--numa-binding: \"nodes\" is not allowed\n  use one of: node, socket, exclusive, "
        "core-complex");
  CHECK(machine.bind("node", 9, machine.gpus) ==
        "--numa-binding: 9 workers, and 8 GPUs are visible\n"
        "  start one worker for each GPU at most");
}

}  // namespace
}  // namespace scaletrain::launcher
