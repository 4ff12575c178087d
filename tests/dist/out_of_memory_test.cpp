#include "lib/dist/out_of_memory.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace scaletrain::dist {

TEST_CASE("what LibTorch, cuDNN, cuBLAS and NCCL say when memory runs out") {
  const std::vector<std::string> texts{
      "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
      "you tried to allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)",
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
      // cudaHostAlloc, for pinned memory
      "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some "
      "other API call",
      "CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY",
      "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
      "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
      "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
      "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
      "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
      // the cause stands in the last of its lines
      "NCCL error in: ProcessGroupNCCL.cpp:94, unhandled cuda error, NCCL version 2.28.9\n"
      "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
      "Cuda failure 2 'out of memory'",
      "NCCL error in: ProcessGroupNCCL.cpp:94, unhandled cuda error, NCCL version 2.28.9\n"
      "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
      "Failed to CUDA calloc 8388608 bytes",
  };
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(says_out_of_memory(text));
  }
}

TEST_CASE("other failures of the same libraries are none of memory") {
  const std::vector<std::string> texts{
      "",
      "CUDA error: an illegal memory access was encountered",
      "CUDA error: device-side assert triggered",
      "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
      "NCCL error in: ProcessGroupNCCL.cpp:94, remote process exited or there was a network error",
      "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
      "device error.\nLast error:\nsocketPollConnect: connect returned Connection refused",
      "Connection closed by peer [127.0.0.1]:29500",
  };
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK_FALSE(says_out_of_memory(text));
  }
}

TEST_CASE("exceptions mean it by their type or their text") {
  const auto caught = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const std::exception& error) {
      return is_out_of_memory(error) ? "memory: " + text_of(error) : "other: " + text_of(error);
    }
    return "nothing";
  };
  CHECK(caught([] { throw std::bad_alloc(); }).starts_with("memory: "));
  CHECK(caught([] { C10_THROW_ERROR(OutOfMemoryError, "no room"); }) == "memory: no room");
  CHECK(caught([] { at::empty({std::int64_t{1} << 50}, at::kByte); }).starts_with("memory: "));
  CHECK(caught([] { throw std::runtime_error("a bug"); }) == "other: a bug");
}

}  // namespace scaletrain::dist
