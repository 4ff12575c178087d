// Implements lib/dist/cuda_library.h with LibTorch's CUDA half and NCCL.
#include "lib/dist/cuda_library.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lib/dist/watched.h"

namespace {

using scaletrain::dist::CollectiveListener;
using scaletrain::dist::CudaLibrary;
using scaletrain::dist::Watched;

// NCCL's own timeout is later than our watch's (lib/dist/collective_watch.h).
constexpr std::chrono::minutes kLater{1};

int device_count() { return c10::cuda::device_count(); }

void set_device(c10::DeviceIndex device) { c10::cuda::set_device(device); }

std::string device_name(c10::DeviceIndex device) {
  return at::cuda::getDeviceProperties(device)->name;
}

int compute_capability(c10::DeviceIndex device) {
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(device);
  return 10 * properties.major + properties.minor;
}

c10::intrusive_ptr<c10d::Backend> make_nccl(c10::intrusive_ptr<c10d::Store> store, int rank,
                                            int world_size, c10::DeviceIndex device,
                                            std::chrono::milliseconds timeout,
                                            std::shared_ptr<CollectiveListener> listener) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout + kLater;
  auto group = c10::make_intrusive<Watched<c10d::ProcessGroupNCCL>>(
      std::move(listener), std::move(store), rank, world_size, std::move(options));
  // Connects now, so that a rank that cannot connect is reported here and not during the first
  // step.
  group->eagerConnectSingleDevice(at::Device(at::kCUDA, device));
  return group;
}

}  // namespace

extern "C" const CudaLibrary* scaletrain_cuda_library() {
  static constexpr CudaLibrary kLibrary{.device_count = device_count,
                                        .set_device = set_device,
                                        .device_name = device_name,
                                        .compute_capability = compute_capability,
                                        .make_nccl = make_nccl};
  return &kLibrary;
}
