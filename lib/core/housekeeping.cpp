#include "lib/core/housekeeping.h"

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::core {
namespace {

// "cannot rename step-2 to this: Input/output error (EIO)" for each step is one cause: its end.
std::string cause_of(std::string_view found, std::string_view consequence) {
  const std::size_t colon = found.rfind(": ");
  return fmt::format("{};{}", colon == std::string_view::npos ? found : found.substr(colon),
                     consequence);
}

}  // namespace

bool Housekeeping::attempt(std::string_view consequence, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const Error&) {  // tried again
  }
  try {
    work();
    return true;
  } catch (const Error& error) {
    failed(error, consequence);
    return false;
  }
}

void Housekeeping::failed(const Error& error, std::string_view consequence) {
  failed(error.place(), error.found(), consequence);
}

void Housekeeping::failed(std::string_view place, std::string_view found,
                          std::string_view consequence) {
  {
    const std::lock_guard lock(mutex_);
    ++failures_;
  }
  note(place, found, consequence);
}

void Housekeeping::note(std::string_view place, std::string_view found,
                        std::string_view consequence) {
  {
    const std::lock_guard lock(mutex_);
    if (!causes_.insert(cause_of(found, consequence)).second) return;
  }
  warn("{}: {}; {}", place, found, consequence);
}

std::int64_t Housekeeping::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace scaletrain::core
