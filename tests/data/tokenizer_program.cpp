// Texts to tokens and back, one a line, as JSON: what tokenizer_test.py compares.
//
//   tokenizer_program TOKENIZER < TEXTS      each line a JSON text; prints what its tokens stand
//                                            for, shown token by token, and whether the first blank
//                                            is the tokenizer's
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "app/tokenizer/make_tokenizer.h"
#include "app/tokenizer/sentence_pieces.h"
#include "app/tokenizer/text_stream.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

int main(int count, char** values) {
  const auto tokenizer =
      app::make_tokenizer(count > 1 ? values[1] : "bytes", "", app::load_sentence_pieces);
  const bool blank = app::adds_blank(*tokenizer);
  for (std::string line; std::getline(std::cin, line);) {
    app::TextStream stream;
    std::string text;
    for (const std::uint32_t token :
         tokenizer->encode(nlohmann::json::parse(line).get<std::string>())) {
      text += stream.add(tokenizer->bytes_of(token));
    }
    text += stream.finish();
    fmt::print("{}\n", nlohmann::json{{"text", text}, {"blank", blank}}.dump());
  }
}
