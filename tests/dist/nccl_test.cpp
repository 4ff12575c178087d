// NCCL with one rank, on a device: all that one device can show of it.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lib/dist/collective_watch.h"
#include "lib/dist/cuda_library.h"
#include "lib/dist/device.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;

const bool kHasDriver = std::filesystem::exists("/dev/nvidiactl");

struct OneRank {
  core::Descriptor file = core::make_beat_file();
  std::shared_ptr<CollectiveWatch> watch = std::make_shared<CollectiveWatch>(
      CollectiveWatch::Options{.leave = [](const std::exception_ptr&) {}}, core::Beat(file.get()));
  at::Device device = choose_device("cuda", {.rank = 0, .ranks = 1});
  c10::intrusive_ptr<c10d::Backend> backend = cuda_library().make_nccl(
      c10::make_intrusive<c10d::HashStore>(), 0, 1, device.index(), 30s, watch);

  core::Phase phase() const { return core::BeatReader(file.get()).state().phase; }
  at::Tensor sum() {
    std::vector<at::Tensor> tensors{at::ones({1 << 20}, at::TensorOptions(device))};
    backend->allreduce(tensors, c10d::AllreduceOptions())->wait();
    return tensors.front();
  }
};

}  // namespace

TEST_CASE("NCCL sums, and its collective lasts until the device is done with it" *
          doctest::skip(!kHasDriver)) {
  OneRank rank;
  const at::Tensor sum = rank.sum();
  CHECK(rank.phase() == core::Phase::kCollective);
  CHECK(sum.sum().item<float>() == 1 << 20);
  for (int i = 0; i < 1000 && rank.phase() == core::Phase::kCollective; ++i) {
    rank.watch->look(core::now());
    std::this_thread::sleep_for(1ms);
  }
  CHECK(rank.phase() == core::Phase::kStarting);
  rank.watch->check();
  rank.backend->shutdown();
}

TEST_CASE("NCCL's communicator can be aborted from another thread" * doctest::skip(!kHasDriver)) {
  OneRank rank;
  rank.sum();
  std::thread([&] { rank.backend->abort(); }).join();
}

}  // namespace scaletrain::dist
