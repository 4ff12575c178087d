// Rule that locates the label of a sample in a shard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

// Parsed label: a class number, or a list of them.
struct FoundLabel {
  std::int64_t number = 0;  // -1: a list
  std::vector<std::int64_t> list = {};
};

struct LabelRule {
  static constexpr const char* kFolder = "folder";

  // Extension of the member with the label, after the key; kFolder: the last folder in the key is
  // the class name, "cat" in "train/cat/000".
  std::string field = "cls";
  // Key in the member's JSON object whose value is a class number, a list of numbers or a class
  // name; "": the member is the label itself (lib/format/tar/label_text.h).
  std::string key = {};
  std::vector<std::string> classes = {};  // class names by number, if labels may be names
  bool skips_incomplete = false;          // skips samples without an image or a label

  bool of_folder() const { return field == kFolder; }

  // Parses a member's text; nullopt if it is not a label.
  std::optional<FoundLabel> parse(std::string_view text) const;
  // Returns the class of a key; nullopt if its folder is not a class.
  std::optional<std::int64_t> class_of(std::string_view key) const;

  // Hash of all settings that change the samples of a shard or their classes; 0 for the default
  // rule.
  std::uint64_t digest() const;
};

}  // namespace scaletrain::format
