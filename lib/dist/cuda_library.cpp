#include "lib/dist/cuda_library.h"

#include "lib/core/process/programs.h"

namespace scaletrain::dist {
namespace {

const CudaLibrary* open_beside_program() {
  void* const symbol = core::symbol_beside_us(
      "libscaletrain_cuda.so", "scaletrain_cuda_library", "/device",
      "build the target scaletrain_cuda where the CUDA 13 toolkit is installed, or use "
      "\"device\": \"cpu\"");
  return reinterpret_cast<decltype(&scaletrain_cuda_library)>(symbol)();
}

}  // namespace

const CudaLibrary& cuda_library() {
  static const CudaLibrary* const library = open_beside_program();
  return *library;
}

}  // namespace scaletrain::dist
