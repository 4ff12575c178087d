// Where a shard says of which class a sample is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

// What a label says: a class number, or a list of them.
struct FoundLabel {
  std::int64_t number = 0;  // -1: a list
  std::vector<std::int64_t> list = {};
};

struct LabelRule {
  static constexpr const char* kFolder = "folder";

  // What follows the key in the name of the member; kFolder: the last folder in the key, "cat" of
  // "train/cat/000", is the name of a class.
  std::string field = "cls";
  // Of the member, which is a JSON object then, the value that is a number, a list of numbers or
  // the name of a class; "": the member is the label itself (lib/format/label_text.h).
  std::string key = {};
  std::vector<std::string> classes = {};  // by number, where names may be
  bool skips_incomplete = false;          // samples without an image or a label are left out

  bool of_folder() const { return field == kFolder; }

  // The label in a member's text; nullopt for what is none.
  std::optional<FoundLabel> parse(std::string_view text) const;
  // The class of a key; nullopt where its folder is none.
  std::optional<std::int64_t> class_of(std::string_view key) const;

  // Of all that changes which samples a shard has and of which class they are; 0 for the usual
  // rule.
  std::uint64_t digest() const;
};

}  // namespace scaletrain::format
