#include "lib/recipe/catalog/braces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "lib/core/text/text.h"

namespace scaletrain::recipe {
namespace {

// Parses at most 12 digits, else returns -1.
std::int64_t to_number(const std::string& text) {
  return text.size() > 12 ? -1 : core::parse_number<std::int64_t>(text).value_or(-1);
}

// Expands "a..b", the numbers in `text`.
std::vector<std::string> expand_range(const std::string& text, std::size_t dots,
                                      std::string& mistake) {
  const std::string low = text.substr(0, dots);
  const std::int64_t first = to_number(low);
  const std::int64_t last = to_number(text.substr(dots + 2));
  std::vector<std::string> result;
  if (first < 0 || last < 0) {
    mistake = "\"{" + text + "}\" is not a range of two numbers";
  } else if (first > last) {
    mistake = "\"{" + text + "}\" counts down";
  } else if (last - first >= static_cast<std::int64_t>(kMaxExpanded)) {
    mistake = fmt::format("\"{{{}}}\" stands for more than {} names", text, kMaxExpanded);
  } else {
    for (std::int64_t number = first; number <= last; ++number) {
      result.push_back(fmt::format("{:0{}}", number, low.size()));
    }
  }
  return result;
}

std::vector<std::string> expand_list(const std::string& text) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = text.find(',', begin);
    result.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return result;
    begin = comma + 1;
  }
}

// Expands the text between one pair of braces.
std::vector<std::string> expand_inside(const std::string& text, std::string& mistake) {
  if (text.find('{') != std::string::npos) {
    mistake = "has a brace inside a brace";
    return {};
  }
  const std::size_t dots = text.find("..");
  if (dots != std::string::npos) return expand_range(text, dots, mistake);
  if (text.find(',') != std::string::npos) return expand_list(text);
  mistake = "\"{" + text + R"(}" has neither ".." nor a comma)";
  return {};
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& text, std::string& mistake) {
  std::vector<std::string> result{""};
  std::size_t begin = 0;
  while (true) {
    const std::size_t open = std::min(text.find('{', begin), text.size());
    const std::string plain = text.substr(begin, open - begin);
    if (plain.find('}') != std::string::npos) mistake = R"(has a "}" without a "{")";
    const std::size_t close = text.find('}', open);
    if (open < text.size() && close == std::string::npos) mistake = R"(has a "{" without a "}")";
    if (!mistake.empty()) return {};
    for (std::string& name : result) name += plain;
    if (open == text.size()) return result;

    const std::vector<std::string> inside =
        expand_inside(text.substr(open + 1, close - open - 1), mistake);
    if (mistake.empty() && result.size() * inside.size() > kMaxExpanded) {
      mistake = fmt::format("stands for more than {} names", kMaxExpanded);
    }
    if (!mistake.empty()) return {};
    std::vector<std::string> longer;
    longer.reserve(result.size() * inside.size());
    for (const std::string& name : result) {
      for (const std::string& part : inside) longer.push_back(name + part);
    }
    result = std::move(longer);
    begin = close + 1;
  }
}

}  // namespace scaletrain::recipe
