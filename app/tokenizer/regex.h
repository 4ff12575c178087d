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
  // Throws core::DataError naming `place` for what is no expression.
  Regex(const std::string& pattern, const std::string& place);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The first match at or behind `from`, as begin and end; `text` is UTF-8. Any thread.
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text,
                                                          std::size_t from) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

// An expression that matches `text` and nothing else.
std::string regex_quote(std::string_view text);

}  // namespace scaletrain::app
