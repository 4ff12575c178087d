#include "lib/format/tokens/token_card.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/format/json_fields.h"

namespace scaletrain::format {
namespace {

constexpr int kTokenCardVersion = 1;
constexpr std::int64_t kMostVocabulary = std::int64_t{1} << 32;

TokenCard::File read_card_file(const nlohmann::json& object, const std::string& place,
                               const std::string& pointer) {
  JsonFields fields(object, place, pointer);
  TokenCard::File file;
  file.name = fields.text("name");
  file.tokens = fields.integer("tokens", 0);
  if (fields.has("text_bytes")) file.text_bytes = fields.integer("text_bytes", 0);
  if (fields.has("without_loss")) file.without_loss = fields.integer("without_loss", 0);
  fields.done();
  return file;
}

TokenCard read_card(std::string_view text, const std::string& place) {
  const nlohmann::json object = parse_object(text, place);
  JsonFields fields(object, place);
  const auto refuse = [&](const std::string& key, const std::string& found,
                          const std::string& remedy) {
    throw core::DataError(fmt::format("{}: /{}", place, key), found, remedy);
  };
  if (const std::int64_t version = fields.integer("version"); version != kTokenCardVersion) {
    refuse("version", fmt::format("is {}", version),
           fmt::format("this program reads version {}", kTokenCardVersion));
  }
  TokenCard card;
  card.tokenizer = fields.text("tokenizer");
  card.vocab_size = fields.integer("vocab_size", 1);
  card.end_of_text = fields.integer("end_of_text", 0);
  card.layout = fields.text("layout");
  card.token_bytes = fields.integer("token_bytes");
  card.documents = fields.integer("documents", 0);
  card.tokens = fields.integer("tokens", 0);
  if (card.vocab_size > kMostVocabulary || card.end_of_text >= card.vocab_size) {
    refuse("end_of_text", fmt::format("{} of {} tokens", card.end_of_text, card.vocab_size),
           fmt::format("tokens are less than vocab_size, which is at most {}", kMostVocabulary));
  }
  if (card.token_bytes != 2 && card.token_bytes != 4) {
    refuse("token_bytes", fmt::format("is {}", card.token_bytes), "2 or 4 is allowed here");
  }
  const nlohmann::json& files = fields.value("files");
  if (!files.is_array()) refuse("files", "is not a list", "use another copy of the file");
  for (std::size_t i = 0; i < files.size(); ++i) {
    card.files.push_back(read_card_file(files[i], place, fmt::format("/files/{}", i)));
  }
  fields.done();
  return card;
}

}  // namespace

const TokenCard::File* TokenCard::find(std::string_view name) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const File& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::optional<std::string> token_card_path(std::string_view token_file) {
  const std::size_t name = token_file.rfind('/') + 1;  // 0 without a folder
  const std::size_t dot = token_file.rfind('.');
  const std::size_t dash = token_file.rfind('-');
  if (dot == std::string_view::npos || dash == std::string_view::npos || dash <= name ||
      dot <= dash + 1) {
    return std::nullopt;
  }
  const std::string_view number = token_file.substr(dash + 1, dot - dash - 1);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::string(token_file.substr(0, dash)) + ".tokens.json";
}

TokenCard parse_token_card(std::string_view text, const std::string& place) {
  try {
    return read_card(text, place);
  } catch (const core::CheckpointError& error) {  // JsonFields' own
    throw core::DataError(error.place(), error.found(),
                          "run scaletrain data tokenize again, or use another copy of the file");
  }
}

nlohmann::ordered_json token_card_json(const TokenCard& card) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const TokenCard::File& file : card.files) {
    nlohmann::ordered_json entry = {{"name", file.name}, {"tokens", file.tokens}};
    if (file.text_bytes) entry["text_bytes"] = *file.text_bytes;
    if (file.without_loss > 0) entry["without_loss"] = file.without_loss;
    files.push_back(std::move(entry));
  }
  return {{"version", kTokenCardVersion},  {"tokenizer", card.tokenizer},
          {"vocab_size", card.vocab_size}, {"end_of_text", card.end_of_text},
          {"layout", card.layout},         {"token_bytes", card.token_bytes},
          {"documents", card.documents},   {"tokens", card.tokens},
          {"files", std::move(files)}};
}

}  // namespace scaletrain::format
