#include "launcher/build_version.h"

#include <fmt/format.h>

#include "lib/core/version.h"

namespace scaletrain::launcher {

std::string build_version() {
  return fmt::format("scaletrain {}\ncommit {}\nLibTorch {}\nCUDA {}\nNCCL {}", core::version(),
                     commit(), SCALETRAIN_LIBTORCH, SCALETRAIN_CUDA, SCALETRAIN_NCCL);
}

}  // namespace scaletrain::launcher
