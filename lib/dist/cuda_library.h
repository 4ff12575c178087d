// Loads libscaletrain_cuda.so (lib/cuda), which has everything that needs CUDA. It is loaded only
// when a device is used, so that a CPU run does not load LibTorch's CUDA libraries.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace scaletrain::dist {

class CollectiveListener;

// Functions of the library. LibTorch's device-independent interfaces (streams, pinned memory,
// statistics) work once the library is open and are not repeated here.
struct CudaLibrary {
  int (*device_count)();  // 0 without a driver or a visible device
  void (*set_device)(c10::DeviceIndex device);
  std::string (*device_name)(c10::DeviceIndex device);
  int (*compute_capability)(c10::DeviceIndex device);  // 80 for 8.0
  c10::intrusive_ptr<c10d::Backend> (*make_nccl)(c10::intrusive_ptr<c10d::Store> store, int rank,
                                                 int world_size, c10::DeviceIndex device,
                                                 std::chrono::milliseconds timeout,
                                                 std::shared_ptr<CollectiveListener> listener);
};

// Loads the library beside the program, once. Throws core::UsageError if it is missing or does not
// load.
const CudaLibrary& cuda_library();

}  // namespace scaletrain::dist

// The library's one symbol.
extern "C" const scaletrain::dist::CudaLibrary* scaletrain_cuda_library();
