// What lib/dist/cuda_library.h promises, over LibTorch's CUDA half and NCCL.
#include "lib/dist/cuda_library.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lib/dist/beating.h"

namespace {

namespace core = scaletrain::core;
using scaletrain::dist::Beating;
using scaletrain::dist::CudaLibrary;

int device_count() { return c10::cuda::device_count(); }

void set_device(c10::DeviceIndex device) { c10::cuda::set_device(device); }

std::string device_name(c10::DeviceIndex device) {
  return at::cuda::getDeviceProperties(device)->name;
}

c10::intrusive_ptr<c10d::Backend> make_nccl(c10::intrusive_ptr<c10d::Store> store, int rank,
                                            int world_size, c10::DeviceIndex device,
                                            std::chrono::milliseconds timeout, core::Beat beat) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto group = c10::make_intrusive<Beating<c10d::ProcessGroupNCCL>>(
      std::move(beat), std::move(store), rank, world_size, std::move(options));
  // Connects now, so that a rank that cannot is told here and not in the middle of the first step.
  group->eagerConnectSingleDevice(at::Device(at::kCUDA, device));
  return group;
}

}  // namespace

extern "C" const CudaLibrary* scaletrain_cuda_library() {
  static constexpr CudaLibrary kLibrary{.device_count = device_count,
                                        .set_device = set_device,
                                        .device_name = device_name,
                                        .make_nccl = make_nccl};
  return &kLibrary;
}
