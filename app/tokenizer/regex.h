// Regular expressions over UTF-8 text with Unicode's classes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace scaletrain::app {

class Regex {
 public:
  // Throws core::DataError naming `place` for an invalid expression.
  Regex(const std::string& pattern, const std::string& place);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Returns begin and end of the first match at or after `from`; `text` is UTF-8. Any thread.
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text,
                                                          std::size_t from) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

// Returns an expression that matches exactly `text`.
std::string regex_quote(std::string_view text);

}  // namespace scaletrain::app
