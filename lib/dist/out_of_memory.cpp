#include "lib/dist/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>

#include "lib/core/error.h"

namespace scaletrain::dist {
namespace {

// Texts of LibTorch 2.11, cuDNN 9 and NCCL 2.28.
constexpr std::array<std::string_view, 12> kPhrases{
    "can't allocate memory",       // LibTorch on a CPU
    "C10 Out of Memory",           // LibTorch on a CPU
    "CUDA out of memory",          // LibTorch's allocator of device memory
    "CUDA error: out of memory",   // pinned memory, and cudaMalloc outside of LibTorch
    "CUDA_ERROR_OUT_OF_MEMORY",    // the driver
    "CUBLAS_STATUS_ALLOC_FAILED",  // its workspace
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "ALLOCATION_FAILED",       // CUDNN_STATUS_INTERNAL_ERROR_{DEVICE,HOST}_ALLOCATION_FAILED
    "'out of memory'",         // NCCL: Cuda failure 2 'out of memory'
    "Failed to CUDA",          // NCCL: ... calloc, malloc, host alloc N bytes
    "Cannot allocate memory",  // the system's ENOMEM, under NCCL's shared memory too
};

}  // namespace

bool says_out_of_memory(std::string_view message) {
  return std::any_of(kPhrases.begin(), kPhrases.end(), [&](std::string_view phrase) {
    return message.find(phrase) != std::string_view::npos;
  });
}

std::string text_of(const std::exception& error) {
  const auto* const ours = dynamic_cast<const c10::Error*>(&error);
  return ours != nullptr ? ours->what_without_backtrace() : core::describe(error);
}

bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         says_out_of_memory(text_of(error));
}

}  // namespace scaletrain::dist
