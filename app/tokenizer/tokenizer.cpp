#include "app/tokenizer/tokenizer.h"

namespace scaletrain::app {

bool adds_blank(const Tokenizer& tokenizer) {
  const std::vector<std::uint32_t> tokens = tokenizer.encode("a");
  return !tokens.empty() && tokenizer.bytes_of(tokens.front()).starts_with(' ');
}

}  // namespace scaletrain::app
