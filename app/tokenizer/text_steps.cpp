#include "app/tokenizer/text_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "lib/core/error.h"

namespace scaletrain::app {
namespace {

std::string any_of(const Vocabulary& added) {
  std::vector<std::string> texts;
  for (const auto& [text, token] : added) texts.push_back(text);
  std::sort(texts.begin(), texts.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  std::string pattern;
  for (const std::string& text : texts) {
    pattern += (pattern.empty() ? "" : "|") + regex_quote(text);
  }
  return pattern;
}

// Calls `other` and `match` with the parts of `text` in their order, empty ones too.
template <class Other, class Match>
void for_each_part(const Regex& regex, std::string_view text, const Other& other,
                   const Match& match) {
  std::size_t done = 0, from = 0;
  while (const auto found = from <= text.size() ? regex.find(text, from) : std::nullopt) {
    const auto [begin, end] = *found;
    if (begin == end) {  // empty match: searches further
      from = end + 1;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) {
        ++from;
      }
      continue;
    }
    other(done, begin);
    match(begin, end);
    done = from = end;
  }
  other(done, text.size());
}

}  // namespace

AddedTokens::AddedTokens(Vocabulary added, const std::string& place)
    : added_(std::move(added)), any_(any_of(added_), place) {}

void AddedTokens::apply(std::string_view text, bool first, Tokens& tokens) const {
  for_each_part(
      any_, text,
      [&](std::size_t begin, std::size_t end) {
        pass(text.substr(begin, end - begin), first && begin == 0, tokens);
      },
      [&](std::size_t begin, std::size_t end) {
        tokens.push_back(added_.at(std::string(text.substr(begin, end - begin))));
      });
}

void NormalForm::apply(std::string_view text, bool first, Tokens& tokens) const {
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; })) {  // ASCII
    return pass(text, first, tokens);
  }
  utf8proc_uint8_t* form = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &form, options_);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(form, &std::free);
  if (bytes < 0) {
    throw core::DataError("tokenizer",
                          fmt::format("Unicode normalization failed: {}", utf8proc_errmsg(bytes)),
                          "check that the text is UTF-8");
  }
  pass({reinterpret_cast<const char*>(form), static_cast<std::size_t>(bytes)}, first, tokens);
}

void Prepend::apply(std::string_view text, bool first, Tokens& tokens) const {
  if ((only_first_ && !first) || (unless_there_ && text.starts_with(before_))) {
    return pass(text, first, tokens);
  }
  pass(before_ + std::string(text), first, tokens);
}

void Replace::apply(std::string_view text, bool first, Tokens& tokens) const {
  std::string result;
  for_each_part(
      what_, text,
      [&](std::size_t begin, std::size_t end) { result += text.substr(begin, end - begin); },
      [&](std::size_t, std::size_t) { result += by_; });
  pass(result, first, tokens);
}

void Split::apply(std::string_view text, bool first, Tokens& tokens) const {
  const auto hand_on = [&](std::size_t begin, std::size_t end) {
    pass(text.substr(begin, end - begin), first && begin == 0, tokens);
  };
  const auto leave_out = [](std::size_t, std::size_t) {};
  if (keep_ == Keep::kBoth) for_each_part(where_, text, hand_on, hand_on);
  if (keep_ == Keep::kMatches) for_each_part(where_, text, leave_out, hand_on);
  if (keep_ == Keep::kOthers) for_each_part(where_, text, hand_on, leave_out);
}

}  // namespace scaletrain::app
