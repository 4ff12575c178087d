#include "lib/dist/foreign_text.h"

#include <c10/util/Exception.h>

namespace scaletrain::dist {

std::string foreign_text(const std::exception& error) {
  const auto* from_c10 = dynamic_cast<const c10::Error*>(&error);
  std::string text = from_c10 != nullptr ? from_c10->what_without_backtrace() : error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) {
    const std::size_t end = text.find("] ");
    if (end != std::string::npos) text.erase(0, end + 2);
  }
  return text;
}

}  // namespace scaletrain::dist
