#include "lib/dist/cuda_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "lib/core/error.h"

namespace scaletrain::dist {
namespace {

const CudaLibrary* open_beside_program() {
  const auto path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libscaletrain_cuda.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : dlsym(library, "scaletrain_cuda_library");
  if (symbol == nullptr) {
    throw core::UsageError(
        "/device", fmt::format("the CUDA library could not be opened ({})", dlerror()),
        "build the target scaletrain_cuda where the CUDA 13 toolkit is installed, or use "
        "\"device\": \"cpu\"");
  }
  return reinterpret_cast<decltype(&scaletrain_cuda_library)>(symbol)();
}

}  // namespace

const CudaLibrary& cuda_library() {
  static const CudaLibrary* const library = open_beside_program();
  return *library;
}

}  // namespace scaletrain::dist
