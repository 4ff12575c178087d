#include "lib/input/transfer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "lib/dist/device.h"

namespace {

using namespace scaletrain;

TEST_CASE("on a CPU the tensors stay where they are") {
  const at::Tensor pixels = at::arange(6), labels = at::arange(2);
  const std::vector<at::Tensor> same = input::Transfer(at::kCPU)({pixels, labels}, {});
  REQUIRE(same.size() == 2);
  CHECK(same[0].is_same(pixels));
  CHECK(same[1].is_same(labels));
}

// The pool gives the same block out again as soon as it may: what a copy has not read by then would
// be overwritten.
TEST_CASE("on a device a block comes back only when its copies are done" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  const auto pool = dist::make_batch_pool(device);
  const input::Transfer transfer(device);
  constexpr std::int64_t kBytes = 1 << 24, kLabels = 64;
  std::vector<at::Tensor> arrived;
  for (int batch = 0; batch < 20; ++batch) {
    const core::Buffer block = pool->take(kBytes + kLabels * sizeof(std::int64_t));
    std::byte* const begin = block.bytes().data();
    const at::Tensor bytes = at::from_blob(begin, {kBytes}, at::kByte).fill_(batch);
    const at::Tensor labels = at::from_blob(begin + kBytes, {kLabels}, at::kLong).fill_(batch);
    for (at::Tensor& copy : transfer({bytes, labels}, block.bytes())) {
      arrived.push_back(copy.to(at::kLong).sum());
    }
  }
  for (int batch = 0; batch < 20; ++batch) {
    const auto at_batch = static_cast<std::size_t>(2 * batch);
    CHECK(arrived[at_batch].item<std::int64_t>() == batch * kBytes);
    CHECK(arrived[at_batch + 1].item<std::int64_t>() == batch * kLabels);
  }
}

}  // namespace
