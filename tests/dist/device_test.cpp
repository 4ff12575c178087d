#include "lib/dist/device.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/core/error.h"

namespace {

using namespace scaletrain;

bool driver_present() { return std::filesystem::exists("/dev/nvidiactl"); }

TEST_CASE("the CPU is a device for any number of ranks") {
  CHECK(dist::choose_device("cpu", 7) == at::Device(at::kCPU));
  CHECK(dist::device_name(at::kCPU) == "cpu");
  CHECK(dist::peak_memory_bytes(at::kCPU) > (1 << 20));
  auto pool = dist::make_batch_pool(at::kCPU);
  CHECK(pool->take(100).bytes().size() >= 100);
}

TEST_CASE("automatic is the CPU where no driver is loaded" * doctest::skip(driver_present())) {
  CHECK(dist::choose_device("auto", 0) == at::Device(at::kCPU));
}

TEST_CASE("CUDA without a device is a mistake of the recipe" * doctest::skip(driver_present())) {
  const auto library =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libscaletrain_cuda.so";
  try {
    dist::choose_device("cuda", 0);
    FAIL("chosen");
  } catch (const core::UsageError& error) {
    const std::string text = error.what();
    if (std::filesystem::exists(library)) {
      CHECK(text ==
            "/device: local rank 0 needs a device of its own; CUDA shows 0 on this node\n"
            "  use \"device\": \"cpu\", or check nvidia-smi and CUDA_VISIBLE_DEVICES");
    } else {
      CHECK(text.starts_with("/device: libscaletrain_cuda.so could not be opened ("));
      CHECK(
          text.ends_with("\n  build the target scaletrain_cuda where the CUDA 13 toolkit is "
                         "installed, or use \"device\": \"cpu\""));
    }
  }
}

TEST_CASE("a CUDA device has a name, memory and pinned buffers" *
          doctest::skip(!driver_present())) {
  const at::Device device = dist::choose_device("auto", 0);
  REQUIRE(device.is_cuda());
  CHECK(!dist::device_name(device).empty());
  CHECK(dist::make_batch_pool(device)->take(100).bytes().size() == 100);
  CHECK(dist::peak_memory_bytes(device) >= 0);
}

}  // namespace
