// A sample of another format, and the names by which flags choose its fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::app {

struct ImportedField {
  std::string extension, bytes;
};

struct ImportedSample {
  std::string key;
  std::vector<ImportedField> fields;
  // The file it came from, as messages show it; "" where keys are made here.
  std::string source = {};
};

// Names given by flags; "" is the usual name of the format.
struct FieldNames {
  std::string image, label;      // a feature, a column, or what follows the key in a member's name
  std::int64_t first_class = 0;  // subtracted from each label
  std::string label_key;         // the label is this key of the field, which is JSON
  bool label_of_folder = false;  // the last folder of the key is the class
  bool multi_hot = false;        // a list has a zero or one for each class
  std::vector<std::string> classes = {};  // names by number; labels may be these names
};

}  // namespace scaletrain::app
