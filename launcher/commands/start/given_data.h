// The kinds of training data that `recipe new` knows: each recognizes a path and fills the facts.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/commands/start/found_data.h"

namespace scaletrain::launcher {

struct GivenData {
  std::string text;            // as typed, without '/' at its end
  std::filesystem::path path;  // as a path
  bool is_folder = false, is_file = false;
};

// Image folders and shards (image_sets.cpp).
bool is_split_folder(const GivenData& given);
bool is_class_folder(const GivenData& given);
bool is_shards(const GivenData& given);
FoundData fill_split_folder(const GivenData& given);
FoundData fill_class_folder(const GivenData& given);
FoundData fill_shards(const GivenData& given);

// Token files and text (text_sets.cpp).
bool is_tokens(const GivenData& given);
bool is_text(const GivenData& given);
FoundData fill_tokens(const GivenData& given);
FoundData fill_text(const GivenData& given);

// Lists and sets of other formats, which a command turns into shards first (foreign_sets.cpp).
bool is_image_list(const GivenData& given);
bool is_foreign(const GivenData& given);
FoundData fill_image_list(const GivenData& given);
FoundData fill_foreign(const GivenData& given);

// Returns a name for the recipe: the last part of the path that is not "train" or a pattern.
std::string name_of_data(const GivenData& given);

// Returns at most the first `count` bytes of a file; "" if it cannot be read. Throws
// core::DataError for a placeholder (lib/core/text/placeholder.h).
std::string head_of(const std::filesystem::path& file, std::size_t count);

}  // namespace scaletrain::launcher
