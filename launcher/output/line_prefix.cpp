#include "launcher/output/line_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <string_view>

namespace scaletrain::launcher {
namespace {

// Length of the name at the start of `text`: letters, digits and _, no digit first.
std::size_t name_length(std::string_view text) {
  const auto is_part = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_';
  };
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return 0;
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_part) -
                                  text.begin());
}

std::string fill_in(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    result += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.size() < 2) {
      result += text;
      break;
    }
    if (text[1] == '$') {
      result += '$';
      text.remove_prefix(2);
      continue;
    }
    const std::size_t braces = text[1] == '{' ? 1 : 0;
    const std::size_t length = name_length(text.substr(1 + braces));
    const std::size_t whole = 1 + braces + length + braces;
    const bool is_closed = braces == 0 || (whole <= text.size() && text[whole - 1] == '}');
    const auto value = values.find(std::string(text.substr(1 + braces, length)));
    if (length > 0 && is_closed && value != values.end()) {
      result += value->second;
      text.remove_prefix(whole);
    } else {
      result += '$';
      text.remove_prefix(1);
    }
  }
  return result;
}

}  // namespace

std::string line_prefix(const std::string& role, int rank, int local_rank) {
  const char* const wanted = std::getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (wanted == nullptr || *wanted == '\0') return fmt::format("[{}{}]:", role, local_rank);
  return fill_in(wanted, {{"role_name", role},
                          {"rank", std::to_string(rank)},
                          {"local_rank", std::to_string(local_rank)}});
}

}  // namespace scaletrain::launcher
