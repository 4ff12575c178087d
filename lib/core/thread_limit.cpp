#include "lib/core/thread_limit.h"

#include <system_error>

namespace scaletrain::core {

bool is_thread_refusal(const std::exception& error) {
  const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
  return of_system != nullptr &&
         of_system->code().default_error_condition() == std::errc::resource_unavailable_try_again;
}

}  // namespace scaletrain::core
