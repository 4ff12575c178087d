#include "app/tokenizer/bpe_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "app/tokenizer/bpe.h"
#include "app/tokenizer/json_steps.h"
#include "app/tokenizer/text_steps.h"
#include "app/tokenizer/utf8.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/placeholder.h"
#include "lib/format/hashed_file.h"
#include "lib/format/json_fields.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
// Ids below this, or below the file's number of bytes, are allowed: a list of all tokens takes
// memory for each id up to the largest.
constexpr std::int64_t kAlwaysAllowedIds = 1 << 16;
// End-of-document tokens of published models, by name.
constexpr const char* kGpt2End = "<|endoftext|>";
constexpr std::array kUsualEnds{kGpt2End, "<|end_of_text|>", "</s>", "<eos>",
                                "<|end▁of▁sentence|>"};

std::string read(const fs::path& path) {
  std::string text = core::read_file(path, kMostBytes, core::ExitCode::kData);
  core::refuse_placeholder(path.string(), text);
  return text;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& found) {
  throw core::DataError(
      path.string(), found,
      "docs/reference/data.md lists what is supported; tokenize with Python and numpy "
      "instead");
}

// The id of a token, at `pointer` of the file. Throws core::DataError.
std::uint32_t id_of(const json& value, const fs::path& path, const std::string& pointer) {
  const auto most = std::max(kAlwaysAllowedIds, static_cast<std::int64_t>(fs::file_size(path))) - 1;
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                        : value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
                              value.get<std::int64_t>() <= most;
  if (fits) return value.get<std::uint32_t>();
  throw core::DataError(fmt::format("{}: {}", path.string(), core::printable(pointer)),
                        fmt::format("is {}, which is not a token id of a file of this size",
                                    value.dump(-1, ' ', false, json::error_handler_t::replace)),
                        fmt::format("an id is an integer from 0 to {}", most));
}

Vocabulary vocabulary_of(const json& tokens, const fs::path& path, const std::string& pointer) {
  Vocabulary result;
  for (const auto& [text, id] : tokens.items()) {
    result.emplace(text, id_of(id, path, fmt::format("{}/{}", pointer, text)));
  }
  return result;
}

class BpeTokenizer : public Tokenizer {
 public:
  // `bytes`: text of each token.
  BpeTokenizer(std::string name, Steps steps, std::vector<std::string> bytes, std::uint32_t end)
      : name_(std::move(name)), steps_(std::move(steps)), bytes_(std::move(bytes)), end_(end) {
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) steps_[i]->set_next(*steps_[i + 1]);
  }

  std::vector<std::uint32_t> encode(std::string_view text) const override {
    Tokens tokens;
    if (!text.empty()) steps_.front()->apply(text, true, tokens);
    return tokens;
  }
  std::string bytes_of(std::uint32_t token) const override {
    return token < bytes_.size() ? bytes_[token] : "";
  }
  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(bytes_.size()); }
  std::uint32_t end_of_text() const override { return end_; }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  Steps steps_;
  std::vector<std::string> bytes_;
  std::uint32_t end_;
};

// Added tokens match their text anywhere; special ones are matched but never shown.
struct Added {
  Vocabulary tokens;
  std::vector<std::uint32_t> special;
};

// Returns the bytes of the tokens of `vocabulary` and `added`, by id; `sign` is their character for
// a blank.
std::vector<std::string> bytes_of_tokens(const Vocabulary& vocabulary, const Added& added,
                                         const BpeOptions& options, const std::string& sign) {
  std::uint32_t size = 0;
  for (const Vocabulary* const part : {&vocabulary, &added.tokens}) {
    for (const auto& entry : *part) size = std::max(size, entry.second + 1);
  }
  std::vector<std::string> result(size);
  for (const auto& [text, token] : vocabulary) {
    const auto byte = options.byte_fallback ? byte_of_name(text) : std::nullopt;
    result[token] = options.byte_level ? text_as_bytes(text)
                    : byte             ? *byte
                    : sign.empty()     ? text
                                       : replace_all(text, sign, " ");
  }
  for (const auto& [text, token] : added.tokens) result[token] = text;
  for (const std::uint32_t token : added.special) result[token].clear();
  return result;
}

// Returns "eos_token" of the configuration beside `path`: a text, or an object with it.
std::optional<std::string> configured_end(const fs::path& path) {
  const fs::path config = path.parent_path() / "tokenizer_config.json";
  if (!fs::exists(config)) return std::nullopt;
  const json fields = format::parse_object(read(config), config.string());
  const json end = fields.value("eos_token", json());
  if (end.is_string()) return end.get<std::string>();
  if (!end.is_object()) return std::nullopt;
  const json content = end.value("content", json());
  if (content.is_string()) return content.get<std::string>();
  throw core::DataError(config.string(), "/eos_token/content is not a text",
                        "use the model's own tokenizer_config.json");
}

std::uint32_t find_end(const fs::path& path, const std::string& asked, const Vocabulary& all) {
  std::vector<std::string> names;
  if (!asked.empty()) {
    names = {asked};
  } else if (const auto configured = configured_end(path)) {
    names = {*configured};
  } else {
    names.assign(kUsualEnds.begin(), kUsualEnds.end());
  }
  for (const std::string& name : names) {
    if (const auto found = all.find(name); found != all.end()) return found->second;
  }
  throw core::DataError(
      path.string(),
      fmt::format("has no token {} to end a document with", fmt::join(names, " or ")),
      "name one of its tokens: --end-of-text TEXT");
}

// Contents of a tokenizer file, without its steps.
struct BpeParts {
  Vocabulary vocabulary;
  Added added;
  Merges merges;
  BpeOptions options;
  std::string blank_sign = {};
};

std::unique_ptr<Tokenizer> make_bpe(const fs::path& path, Steps steps, BpeParts parts,
                                    const std::string& end_of_text) {
  Vocabulary all = parts.vocabulary;
  all.insert(parts.added.tokens.begin(), parts.added.tokens.end());
  const std::uint32_t end = find_end(path, end_of_text, all);
  std::vector<std::string> bytes =
      bytes_of_tokens(parts.vocabulary, parts.added, parts.options, parts.blank_sign);
  bytes[end].clear();
  steps.push_back(std::make_unique<EncodePieces>(
      Bpe(std::move(parts.vocabulary), parts.merges, parts.options, path.string())));
  return std::make_unique<BpeTokenizer>(
      fmt::format("{} {}", path.filename().string(), format::sha256_of(path)), std::move(steps),
      std::move(bytes), end);
}

// "a b" a line; GPT-2's file begins with a line "#version".
Merges read_merges(const fs::path& path) {
  const std::string text = read(path);
  Merges merges;
  std::string_view rest = text;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view row = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty() || (line == 1 && row.starts_with("#version"))) continue;
    const std::size_t blank = row.find(' ');
    if (blank == std::string_view::npos || row.find(' ', blank + 1) != std::string_view::npos) {
      throw core::DataError(fmt::format("{}:{}", path.string(), line), "is not two symbols",
                            "use the model's own merges.txt");
    }
    merges.emplace_back(row.substr(0, blank), row.substr(blank + 1));
  }
  return merges;
}

std::unique_ptr<Tokenizer> load_gpt2_files(const fs::path& vocabulary_path,
                                           const std::string& end_of_text) {
  const json tokens = format::parse_object(read(vocabulary_path), vocabulary_path.string());
  Vocabulary vocabulary = vocabulary_of(tokens, vocabulary_path, "");
  Merges merges = read_merges(vocabulary_path.parent_path() / "merges.txt");
  const std::string place = vocabulary_path.string();
  Added added;
  Steps steps;
  if (const auto end = vocabulary.find(kGpt2End); end != vocabulary.end()) {
    added.tokens.insert(*end);
    added.special.push_back(end->second);
    steps.push_back(std::make_unique<AddedTokens>(added.tokens, place));
  }
  add_gpt2_words(place, steps);
  return make_bpe(vocabulary_path, std::move(steps),
                  {.vocabulary = std::move(vocabulary),
                   .added = std::move(added),
                   .merges = std::move(merges),
                   .options = {.byte_level = true}},
                  end_of_text);
}

Merges merges_of(const json& list, const fs::path& path) {
  if (!list.is_array()) refuse(path, "/model/merges is not a list");
  Merges merges;
  for (const json& one : list) {
    if (one.is_array()) {
      merges.emplace_back(one.at(0), one.at(1));
      continue;
    }
    const std::string text = one;
    const std::size_t blank = text.find(' ');
    merges.emplace_back(text.substr(0, blank), text.substr(std::min(blank, text.size() - 1) + 1));
  }
  return merges;
}

Added added_tokens(const json& list, bool normalizes, const fs::path& path) {
  Added added;
  for (const json& one : list) {
    const bool moves = one.value("lstrip", false) || one.value("rstrip", false) ||
                       one.value("single_word", false) ||
                       (normalizes && one.value("normalized", false));
    if (moves) refuse(path, fmt::format("the added token {} is not supported", one.dump()));
    const std::uint32_t id = id_of(one.at("id"), path, "/added_tokens");
    added.tokens[one.at("content")] = id;
    if (one.value("special", false)) added.special.push_back(id);
  }
  return added;
}

BpeOptions options_of(const json& model, const json& pre_tokenizer, const fs::path& path) {
  if (model.value("type", "BPE") != "BPE") {
    refuse(path, fmt::format("a model of type {} is not supported", model["type"].dump()));
  }
  for (const char* const key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const json value = model.value(key, json());
    if (!value.is_null() && value != "" && value != 0.0) {
      refuse(path, fmt::format("/model/{} {} is not supported", key, value.dump()));
    }
  }
  BpeOptions options{.byte_level = is_byte_level(pre_tokenizer),
                     .byte_fallback = model.value("byte_fallback", false),
                     .whole_words = model.value("ignore_merges", false),
                     .unknown = std::nullopt,
                     .fuse_unknown = model.value("fuse_unk", false)};
  const json unknown = model.value("unk_token", json());
  if (unknown.is_string() && !options.byte_level) {
    options.unknown = id_of(model.at("vocab").at(unknown), path, "/model/unk_token");
  }
  return options;
}

std::unique_ptr<Tokenizer> load_tokenizer_json(const fs::path& path,
                                               const std::string& end_of_text) {
  const json file = format::parse_object(read(path), path.string());
  try {
    const json& model = file.at("model");
    const json normalizer = file.value("normalizer", json());
    const json pre_tokenizer = file.value("pre_tokenizer", json());
    const BpeOptions options = options_of(model, pre_tokenizer, path);
    Added added =
        added_tokens(file.value("added_tokens", json::array()), !normalizer.is_null(), path);
    Steps steps;
    if (!added.tokens.empty()) {
      steps.push_back(std::make_unique<AddedTokens>(added.tokens, path.string()));
    }
    add_normalizer(normalizer, path.string(), steps);
    add_pre_tokenizer(pre_tokenizer, path.string(), steps);
    return make_bpe(path, std::move(steps),
                    {.vocabulary = vocabulary_of(model.at("vocab"), path, "/model/vocab"),
                     .added = std::move(added),
                     .merges = merges_of(model.at("merges"), path),
                     .options = options,
                     .blank_sign = blank_sign(normalizer, pre_tokenizer)},
                    end_of_text);
  } catch (const json::exception& error) {
    throw core::DataError(
        path.string(), fmt::format("is not a tokenizer.json of a BPE tokenizer: {}", error.what()),
        "name the file that Hugging Face's tokenizers wrote");
  }
}

}  // namespace

std::unique_ptr<Tokenizer> load_bpe_tokenizer(const fs::path& path,
                                              const std::string& end_of_text) {
  if (!fs::is_directory(path)) {
    return path.filename() == "vocab.json" ? load_gpt2_files(path, end_of_text)
                                           : load_tokenizer_json(path, end_of_text);
  }
  if (fs::exists(path / "tokenizer.json")) {
    return load_tokenizer_json(path / "tokenizer.json", end_of_text);
  }
  if (fs::exists(path / "vocab.json")) return load_gpt2_files(path / "vocab.json", end_of_text);
  throw core::DataError(path.string(), "has neither tokenizer.json nor vocab.json with merges.txt",
                        "name a tokenizer's folder or file, or bytes");
}

}  // namespace scaletrain::app
