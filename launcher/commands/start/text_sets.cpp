// Token files of a language model, and text that becomes some.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "launcher/commands/start/given_data.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/shell_word.h"
#include "lib/format/tokens/token_card.h"
#include "lib/recipe/catalog/braces.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kCardEnding = ".tokens.json";
constexpr const char* kTask = "language_modelling";
constexpr std::int64_t kByteVocabulary = 257;           // 256 bytes and the end of a document
constexpr std::int64_t kGpt2Vocabulary = 50257;         // nanoGPT's .bin files
constexpr std::int64_t kTokensOfOneFile = 100'000'000;  // of `data tokenize`
constexpr std::size_t kHeadBytes = 1 << 16;

bool is_token_name(const std::string& name) {
  return name.ends_with(".bin") || name.ends_with(".npy");
}

std::vector<std::string> files_of(const std::string& text) {
  std::string mistake;
  return recipe::expand_braces(text, mistake);
}

// Returns the card NAME.tokens.json of a folder; nullopt if there is none.
std::optional<format::TokenCard> card_named(const fs::path& folder, const std::string& name) {
  const fs::path file = folder / (name + kCardEnding);
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  return format::parse_token_card(
      core::read_file(file, format::kMaxTokenCardBytes, core::ExitCode::kData), file.string());
}

// The files of a card as a source: one name, or a list.
Json source_of(const fs::path& folder, const format::TokenCard& card) {
  std::vector<std::string> files;
  for (const format::TokenCard::File& file : card.files) {
    files.push_back((folder / file.name).string());
  }
  if (files.size() == 1) return {{"tokens", files[0]}};
  return {{"tokens", files}};
}

void find_held_out(const fs::path& folder, FoundData& found) {
  for (const char* name : {"validation", "valid", "val"}) {
    if (const auto card = card_named(folder, name)) found.val = source_of(folder, *card);
  }
  if (const auto card = card_named(folder, "test")) found.test = source_of(folder, *card);
}

void take_card(const format::TokenCard& card, FoundData& found) {
  found.tokens = card.tokens;
  found.vocab_size = card.vocab_size;
}

// The recipe would be made from the size of a git-lfs pointer or an HTML page.
void refuse_placeholders(const Json& source) {
  if (source.is_null()) return;
  const Json& tokens = source["tokens"];
  for (const Json& one : tokens.is_array() ? tokens : Json::array({tokens})) {
    for (const std::string& file : files_of(one.get<std::string>())) {
      static_cast<void>(head_of(file, core::kPlaceholderBytes));
    }
  }
}

// Returns the name of the card for training: "train", or the first one; "" if there is none.
std::string training_card(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.ends_with(kCardEnding)) continue;
    names.push_back(name.substr(0, name.size() - std::string_view(kCardEnding).size()));
  }
  std::sort(names.begin(), names.end());
  if (std::find(names.begin(), names.end(), "train") != names.end()) return "train";
  return names.empty() ? "" : names[0];
}

// Without a card nanoGPT's layout is assumed: GPT-2's tokens in 16 bits.
void assume_gpt2(const std::vector<std::string>& files, FoundData& found) {
  std::error_code error;
  for (const std::string& file : files) {
    const auto bytes = fs::file_size(file, error);
    if (!error) found.tokens += static_cast<std::int64_t>(bytes) / 2;
  }
  found.vocab_size = kGpt2Vocabulary;
  if (files[0].ends_with(".bin")) found.more["token_bytes"] = 2;
  found.remarks.emplace_back(
      "There is no card beside the token files: GPT-2's vocabulary of 50257 is assumed. Set "
      "model.vocab_size and data.token_bytes if that is wrong.");
}

bool has_field(const Json& record, const std::string& name) {
  return record.is_object() && record.contains(name) && record[name].is_string();
}

// Returns the text field of the first record of a .jsonl; "" if it has none.
std::string text_field(const fs::path& file) {
  const std::string head = head_of(file, kHeadBytes);
  const Json first = Json::parse(head.substr(0, head.find('\n')), nullptr, false);
  for (const char* name : {"text", "content", "body", "document"}) {
    if (has_field(first, name)) return name;
  }
  return "";
}

FoundData found_tokens(const GivenData& given) {
  FoundData found;
  found.task = kTask;
  found.name = name_of_data(given);
  if (given.is_folder) {
    const format::TokenCard card = card_named(given.path, training_card(given.path)).value();
    found.train = source_of(given.path, card);
    take_card(card, found);
    find_held_out(given.path, found);
    return found;
  }
  const std::vector<std::string> files = files_of(given.text);
  found.train = {{"tokens", given.text}};
  const fs::path card = format::token_card_path(files[0]).value_or("");
  std::string name = card.filename().string();
  name.resize(name.size() - std::min(name.size(), std::string_view(kCardEnding).size()));
  const auto known = card_named(card.parent_path(), name);
  if (known) {
    take_card(*known, found);
    if (name == "train") find_held_out(card.parent_path(), found);
  } else {
    assume_gpt2(files, found);
  }
  return found;
}

}  // namespace

bool is_tokens(const GivenData& given) {
  if (given.is_folder) return !training_card(given.path).empty();
  const std::vector<std::string> files = files_of(given.text);
  std::error_code ignored;
  return !files.empty() && is_token_name(files[0]) && fs::is_regular_file(files[0], ignored);
}

FoundData fill_tokens(const GivenData& given) {
  FoundData found = found_tokens(given);
  for (const Json* source : {&found.train, &found.val, &found.test}) refuse_placeholders(*source);
  return found;
}

bool is_text(const GivenData& given) {
  if (!given.is_file) return false;
  const std::string ending = given.path.extension().string();
  if (ending == ".jsonl") return !text_field(given.path).empty();
  constexpr std::array<const char*, 3> kEndings{".txt", ".md", ".text"};
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

// The recipe is for the output of `data tokenize` with a token for each byte.
FoundData fill_text(const GivenData& given) {
  FoundData found;
  found.task = kTask;
  found.name = name_of_data(given);
  const bool is_records = given.path.extension() == ".jsonl";
  if (!is_records) static_cast<void>(head_of(given.path, core::kPlaceholderBytes));
  const std::string field = is_records ? text_field(given.path) : "text";
  const std::string folder = found.name + "-tokens";
  found.commands = {fmt::format("scaletrain data tokenize {} --out {}{}",
                                core::shell_word(given.text), core::shell_word(folder),
                                field == "text" ? "" : " --text-field " + core::shell_word(field))};
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(given.path, error));
  if (error || bytes >= kTokensOfOneFile) {
    found.commands.push_back("scaletrain recipe new --data " + core::shell_word(folder));
    return found;
  }
  found.train = {{"tokens", folder + "/train-000000.bin"}};
  found.tokens = is_records ? bytes / 2 : bytes;  // the names of fields are no tokens
  found.vocab_size = kByteVocabulary;
  found.remarks.emplace_back(
      "The tokens are bytes, which fits small texts. For a subword vocabulary give --tokenizer to "
      "data tokenize and make the recipe anew from its output.");
  return found;
}

}  // namespace scaletrain::launcher
