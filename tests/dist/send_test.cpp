#include "lib/dist/send.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "lib/dist/device.h"

namespace {

using namespace scaletrain;

TEST_CASE("numbers arrive as doubles, and the host's may change then") {
  std::vector<double> values{1.5, -2, 1e300};
  const at::Tensor sent = dist::send(values, at::kCPU);
  values.assign(3, 0);
  CHECK(at::equal(sent, at::tensor({1.5, -2.0, 1e300}, at::kDouble)));
  CHECK(dist::send({}, at::kCPU).numel() == 0);
}

TEST_CASE("numbers reach a device, each batch its own" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  std::vector<at::Tensor> sent;
  for (int i = 0; i < 20; ++i) sent.push_back(dist::send(std::vector<double>(1000, i), device));
  for (int i = 0; i < 20; ++i) {
    CHECK(sent[static_cast<std::size_t>(i)].sum().item<double>() == 1000 * i);
  }
}

}  // namespace
