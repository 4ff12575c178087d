// Converts bytes that arrive in parts to text that can be printed at once.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

class TextStream {
 public:
  // Appends `bytes` and returns the characters that are now complete. Invalid UTF-8 becomes U+FFFD
  // as in Python: one for each maximal invalid sequence.
  std::string add(std::string_view bytes);

  // Call at the end: returns the rest, with an incomplete character as U+FFFD.
  std::string finish();

 private:
  std::string held_;  // start of an incomplete character
};

}  // namespace scaletrain::app
