#include "lib/data/set/folder_files.h"

#include <fmt/format.h>

#include "lib/core/text/lookup.h"
#include "lib/format/tar/tar.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::data {

std::string file_extension(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return "";
  return core::lower_case(name.substr(dot));
}

bool is_image_file(const std::string& name) {
  const std::string extension = file_extension(name);
  return !extension.empty() && format::is_image_extension(extension.substr(1));
}

std::string shown_files(const LeftAlone& left_alone) {
  std::string text;
  for (const auto& [extension, count] : left_alone) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        extension.empty() ? "without extension" : format::shown_name(extension));
  }
  return text;
}

}  // namespace scaletrain::data
