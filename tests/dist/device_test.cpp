#include "lib/dist/device.h"

#include <ATen/Context.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/shared_device.h"

namespace {

using namespace scaletrain;

bool driver_present() { return std::filesystem::exists("/dev/nvidiactl"); }

TEST_CASE("the CPU is a device for any number of ranks") {
  CHECK(dist::choose_device("cpu", {.rank = 7, .ranks = 8}) == at::Device(at::kCPU));
  CHECK(dist::device_name(at::kCPU) == "cpu");
  CHECK(dist::peak_memory_bytes(at::kCPU) > (1 << 20));
  CHECK(dist::peak_memory_bytes(at::kCPU) % 1024 == 0);  // the kernel counts so
  auto pool = dist::make_batch_pool(at::kCPU);
  CHECK(pool->take(100).bytes().size() >= 100);
}

TEST_CASE("automatic is the CPU where no driver is loaded" * doctest::skip(driver_present())) {
  std::string said;
  core::set_warning_listener([&](const std::string& line) { said += line; });
  CHECK(dist::choose_device("auto", {}) == at::Device(at::kCPU));
  core::set_warning_listener({});
  CHECK(said.empty());
}

TEST_CASE("ranks share devices only where a test asks for it, in turn") {
  for (const char* const other : {"0", "yes", ""}) {
    ::setenv("SCALETRAIN_SHARE_DEVICE", other, 1);
    CHECK_FALSE(core::shares_device());
  }
  ::setenv("SCALETRAIN_SHARE_DEVICE", "1", 1);
  CHECK(core::shares_device());
  CHECK(dist::cuda_number("cuda", 2, {.rank = 5, .ranks = 6}) == 1);
  CHECK_THROWS_AS(dist::cuda_number("cuda", 0, {.rank = 5, .ranks = 6}), core::UsageError);
  ::unsetenv("SCALETRAIN_SHARE_DEVICE");
  CHECK_FALSE(core::shares_device());
}

TEST_CASE("a rank without a device of its own is an error, whatever the others take") {
  CHECK(dist::cuda_number("cuda", 2, {.rank = 1, .ranks = 2}) == 1);
  CHECK(dist::cuda_number("auto", 2, {.rank = 1, .ranks = 2}) == 1);
  CHECK(dist::cuda_number("auto", 0, {.rank = 1, .ranks = 2}) == std::nullopt);
  for (const char* const wanted : {"cuda", "auto"}) {
    CHECK_THROWS_WITH_AS(
        dist::cuda_number(wanted, 2, {.rank = 2, .ranks = 4}),
        "/device: local rank 2 of 4 needs a device of its own; CUDA shows 2 on this node\n"
        "  use --nproc 2 or less, or \"device\": \"cpu\"",
        core::UsageError);
  }
}

TEST_CASE("CUDA without a device is a mistake of the recipe" * doctest::skip(driver_present())) {
  const auto library =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libscaletrain_cuda.so";
  try {
    dist::choose_device("cuda", {});
    FAIL("chosen");
  } catch (const core::UsageError& error) {
    const std::string text = error.what();
    if (std::filesystem::exists(library)) {
      CHECK(text ==
            "/device: local rank 0 of 1 needs a device of its own; CUDA shows 0 on this node\n"
            "  use \"device\": \"cpu\", or check nvidia-smi and CUDA_VISIBLE_DEVICES");
    } else {
      CHECK(text.starts_with("/device: libscaletrain_cuda.so could not be opened ("));
      CHECK(
          text.ends_with("\n  build the target scaletrain_cuda where the CUDA 13 toolkit is "
                         "installed, or use \"device\": \"cpu\""));
    }
  }
}

TEST_CASE("cuDNN tries its kernels, unless the same bits are wanted in every run") {
  const at::Context& context = at::globalContext();
  dist::choose_kernels(/*deterministic=*/false);
  CHECK(context.benchmarkCuDNN());
  CHECK_FALSE(context.deterministicAlgorithms());
  CHECK(context.userEnabledMemEfficientSDP());
  CHECK(std::getenv("CUBLAS_WORKSPACE_CONFIG") == nullptr);
  dist::choose_kernels(/*deterministic=*/true);
  CHECK(std::string(std::getenv("CUBLAS_WORKSPACE_CONFIG")) == ":4096:8");
  CHECK_FALSE(context.userEnabledMemEfficientSDP());
  CHECK_FALSE(context.benchmarkCuDNN());
  CHECK(context.deterministicCuDNN());
  CHECK(context.deterministicAlgorithms());
  CHECK_FALSE(context.deterministicFillUninitializedMemory());
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  dist::choose_kernels(/*deterministic=*/true);
  CHECK(std::string(std::getenv("CUBLAS_WORKSPACE_CONFIG")) == ":16:8");  // a person's choice
  ::unsetenv("CUBLAS_WORKSPACE_CONFIG");
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
  at::globalContext().setSDPUseMemEfficient(true);
}

TEST_CASE("a CPU has no compute capability") { CHECK(dist::compute_capability(at::kCPU) == 0); }

TEST_CASE("a CUDA device has a name, memory and pinned buffers" *
          doctest::skip(!driver_present())) {
  const at::Device device = dist::choose_device("auto", {});
  REQUIRE(device.is_cuda());
  CHECK(!dist::device_name(device).empty());
  CHECK(dist::make_batch_pool(device)->take(100).bytes().size() == 100);
  CHECK(dist::peak_memory_bytes(device) >= 0);
}

}  // namespace
