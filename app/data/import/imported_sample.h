// A sample of another format, and the flags that select its fields.
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
  // Source file, for messages; "" if keys are generated.
  std::string source = {};
};

// Names given by flags; "" is the usual name of the format.
struct FieldNames {
  std::string image, label;               // feature, column, or extension of a member
  std::int64_t first_class = 0;           // subtracted from each label
  std::string label_key;                  // the label is this key of the field, which is JSON
  bool label_of_folder = false;           // the last folder of the key is the class
  bool multi_hot = false;                 // a list has a zero or one for each class
  std::vector<std::string> classes = {};  // names by number; labels may be these names
};

}  // namespace scaletrain::app
