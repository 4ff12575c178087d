// Training data that `recipe new` recognizes, and the facts that a recipe needs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace scaletrain::launcher {

struct FoundData {
  using Json = nlohmann::ordered_json;

  std::string kind;                                 // "class folder", for messages
  std::string name;                                 // name of the recipe and of its run folder
  std::string task = "image_classification";        // tasks.def
  Json train, val, test;                            // sources of the recipe; null: none
  Json more = Json::object();                       // further keys of /data
  std::int64_t samples = 0, classes = 0, side = 0;  // images; 0: unknown
  std::int64_t tokens = 0, vocab_size = 0;          // text
  std::vector<std::string> commands;                // prepare the data, before the training
  std::vector<std::string> remarks;                 // guesses, and what is missing

  // False if a recipe needs facts that only the prepared data has.
  bool is_known() const { return samples > 0 || tokens > 0; }
};

}  // namespace scaletrain::launcher
