#include "launcher/platform/gpus.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

// PCI addresses of what CUDA_VISIBLE_DEVICES leaves of four GPUs; number 3 has a MIG instance.
std::string visible(const std::optional<std::string>& list) {
  std::vector<Gpu> gpus;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    gpus.push_back({.name = "H", .uuid = "GPU-" + number + "aaa", .pci = number});
  }
  gpus[3].migs = {"MIG-77f3"};
  std::string result;
  for (const Gpu& gpu : visible_of(gpus, list)) result += gpu.pci;
  return result;
}

TEST_CASE("CUDA_VISIBLE_DEVICES counts up to the first entry that names no device") {
  CHECK(visible(std::nullopt) == "0123");
  CHECK(visible("").empty());
  CHECK(visible("-1").empty());
  CHECK(visible("2") == "2");
  CHECK(visible("3, 0") == "30");
  CHECK(visible("0,9,1") == "0");
  CHECK(visible("0,x,1") == "0");
}

TEST_CASE("devices are named by UUIDs, their beginnings and MIG instances too") {
  CHECK(visible("GPU-2aaa,GPU-1") == "21");
  CHECK(visible("GPU-9,0").empty());
  CHECK(visible("MIG-77f3") == "3");
  CHECK(visible("MIG-GPU-1aaa/2/0") == "1");
  CHECK(visible("MIG-0000").empty());
}

}  // namespace
}  // namespace scaletrain::launcher
