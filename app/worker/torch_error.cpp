#include "app/worker/torch_error.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <new>
#include <string>

#include "lib/dist/out_of_memory.h"

namespace scaletrain::app {

std::unique_ptr<core::Error> translate(const std::exception& error, int rank) {
  const std::string place = fmt::format("rank {}", rank);
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      torch_error != nullptr ? torch_error->what_without_backtrace() : core::describe(error);
  const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                      dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      dist::says_out_of_memory(text);
  if (memory) {
    return std::make_unique<core::OutOfMemoryError>(place, text, dist::kLessMemory);
  }
  return std::make_unique<core::InternalError>(place, text);
}

}  // namespace scaletrain::app
