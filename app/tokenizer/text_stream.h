// Bytes that come in parts, as text that can be shown at once.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

class TextStream {
 public:
  // Appends `bytes` and returns the characters that are complete by now. Invalid UTF-8 becomes
  // U+FFFD, as in Python: one for as many bytes as could have begun a character.
  std::string add(std::string_view bytes);

  // At the end: what is left, an unfinished character as U+FFFD.
  std::string finish();

 private:
  std::string held_;  // the beginning of a character
};

}  // namespace scaletrain::app
