#include "app/tokenizer/json_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "app/tokenizer/utf8.h"
#include "lib/core/error.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kMostGrowth = 256;
// Each step calls the next one; published tokenizers have fewer than 10.
constexpr std::size_t kMostSteps = 64;

using nlohmann::json;

// Radford et al., "Language Models are Unsupervised Multitask Learners", 2019: the released
// encoder's words are contractions, letters, digits and other characters, with the blank before.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

[[noreturn]] void refuse(const std::string& place, const json& what) {
  throw core::DataError(
      place, fmt::format("{} is not supported", what.dump().substr(0, 200)),
      "docs/reference/data.md lists what is; tokenize with Python and numpy instead");
}

std::string kind_of(const json& what) { return what.value("type", ""); }

// Calls the function for each member of "key" if `what` is a Sequence, otherwise for `what` itself.
void for_each_of(const json& what, const char* key, const std::function<void(const json&)>& call) {
  if (what.is_null()) return;
  if (kind_of(what) != "Sequence") return call(what);
  for (const json& one : what.at(key)) for_each_of(one, key, call);
}

// True if PCRE2 may read the expression differently than Hugging Face's tokenizers.
bool is_ambiguous(const std::string& expression) {
  constexpr std::array kSigns{"\\w", "\\W", "\\b", "\\B", "\\h", "\\H", "&&"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](const char* sign) { return expression.find(sign) != std::string::npos; });
}

Regex pattern_of(const json& what, const std::string& place) {
  const json& pattern = what.at("pattern");
  if (pattern.contains("Regex")) {
    const std::string expression = pattern["Regex"];
    if (is_ambiguous(expression)) refuse(place, pattern);
    return {expression, place};
  }
  return {regex_quote(pattern.at("String").get<std::string>()), place};
}

void refuse_many(const Steps& steps, const std::string& place) {
  if (steps.size() < kMostSteps) return;
  throw core::DataError(place, "has too many normalizers and pre-tokenizers",
                        fmt::format("at most {} steps are allowed", kMostSteps));
}

template <class Step, class... Arguments>
void add(Steps& steps, Arguments&&... arguments) {
  steps.push_back(std::make_unique<Step>(std::forward<Arguments>(arguments)...));
}

utf8proc_option_t normal_form(const std::string& name) {
  int options = UTF8PROC_STABLE | (name.ends_with("C") ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (name.starts_with("NFK")) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

void add_split(const json& split, const std::string& place, Steps& steps) {
  const std::string behavior = split.at("behavior");
  const bool invert = split.value("invert", false);
  if (behavior != "Isolated" && behavior != "Removed") refuse(place, split);
  const Keep removed = invert ? Keep::kMatches : Keep::kOthers;
  add<Split>(steps, pattern_of(split, place), behavior == "Isolated" ? Keep::kBoth : removed);
}

void add_metaspace(const json& metaspace, const std::string& place, Steps& steps) {
  const std::string sign = metaspace.at("replacement");
  // One character, as in Hugging Face's tokenizers: four blanks for each blank would make a text
  // four times longer with each step.
  if (sign.empty() || sign.size() != character_bytes(sign[0])) refuse(place, metaspace);
  const std::string scheme = metaspace.value(
      "prepend_scheme", metaspace.value("add_prefix_space", true) ? "always" : "never");
  add<Replace>(steps, Regex(" ", place), sign);
  if (scheme != "never") add<Prepend>(steps, sign, true, scheme == "first");
  if (!metaspace.value("split", true)) return;
  const std::string quoted = regex_quote(sign);
  // Each sign begins a piece.
  add<Split>(steps, Regex(fmt::format("{0}(?:(?!{0})(?s:.))*", quoted), place), Keep::kBoth);
}

void add_byte_level(const json& byte_level, const std::string& place, Steps& steps) {
  if (byte_level.value("add_prefix_space", true)) add<Prepend>(steps, " ", true, false);
  if (byte_level.value("use_regex", true)) add_gpt2_words(place, steps);
}

void add_digits(const json& digits, const std::string& place, Steps& steps) {
  const bool alone = digits.value("individual_digits", false);
  add<Split>(steps, Regex(alone ? "\\p{N}" : "\\p{N}+", place), Keep::kBoth);
}

}  // namespace

void add_gpt2_words(const std::string& place, Steps& steps) {
  add<Split>(steps, Regex(kGpt2Words, place), Keep::kBoth);
}

void add_normalizer(const json& normalizer, const std::string& place, Steps& steps) {
  std::size_t growth = 1;  // at most, of a text's bytes
  const auto grow = [&](const std::string& text) {
    const std::size_t bytes = std::max<std::size_t>(text.size(), 1);
    if (bytes <= kMostGrowth / growth) {
      growth *= bytes;
      return;
    }
    throw core::DataError(
        place, "/normalizer: its Prepend and Replace steps lengthen a text too much",
        fmt::format("the product of the lengths of the inserted texts is at most {} bytes",
                    kMostGrowth));
  };
  for_each_of(normalizer, "normalizers", [&](const json& one) {
    refuse_many(steps, place);
    const std::string kind = kind_of(one);
    if (kind == "NFC" || kind == "NFD" || kind == "NFKC" || kind == "NFKD") {
      add<NormalForm>(steps, normal_form(kind));
    } else if (kind == "Prepend") {
      auto before = one.at("prepend").get<std::string>();
      grow(before);
      add<Prepend>(steps, std::move(before), false, false);
    } else if (kind == "Replace") {
      auto content = one.at("content").get<std::string>();
      grow(content);
      add<Replace>(steps, pattern_of(one, place), std::move(content));
    } else {
      refuse(place, one);
    }
  });
}

void add_pre_tokenizer(const json& pre_tokenizer, const std::string& place, Steps& steps) {
  for_each_of(pre_tokenizer, "pretokenizers", [&](const json& one) {
    refuse_many(steps, place);
    const std::string kind = kind_of(one);
    if (kind == "ByteLevel") {
      add_byte_level(one, place, steps);
    } else if (kind == "Split") {
      add_split(one, place, steps);
    } else if (kind == "Metaspace") {
      add_metaspace(one, place, steps);
    } else if (kind == "Digits") {
      add_digits(one, place, steps);
    } else {
      refuse(place, one);
    }
  });
}

bool is_byte_level(const json& pre_tokenizer) {
  bool found = false;
  for_each_of(pre_tokenizer, "pretokenizers",
              [&](const json& one) { found = found || kind_of(one) == "ByteLevel"; });
  return found;
}

std::string blank_sign(const json& normalizer, const json& pre_tokenizer) {
  std::string sign;
  for_each_of(normalizer, "normalizers", [&](const json& one) {
    const json pattern = one.value("pattern", json::object());
    if (kind_of(one) == "Replace" && pattern.value("String", "") == " ") sign = one.at("content");
  });
  for_each_of(pre_tokenizer, "pretokenizers", [&](const json& one) {
    if (kind_of(one) == "Metaspace") sign = one.at("replacement");
  });
  return sign;
}

}  // namespace scaletrain::app
