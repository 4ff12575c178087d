#include "launcher/commands/start/given_data.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <system_error>

#include "lib/core/text/placeholder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '-' || byte == '_' ||
         byte == '.';
}

}  // namespace

std::string name_of_data(const GivenData& given) {
  std::error_code ignored;
  for (fs::path path = fs::absolute(given.path, ignored).lexically_normal(); path.has_filename();
       path = path.parent_path()) {
    std::string name = path.filename().string();
    if (name.find_first_of("*{") != std::string::npos || name.starts_with("train")) continue;
    if (!given.is_folder && path == fs::absolute(given.path, ignored)) name = path.stem().string();
    if (!name.empty() && std::all_of(name.begin(), name.end(), is_name_byte)) return name;
  }
  return "new";
}

std::string head_of(const fs::path& file, std::size_t count) {
  std::ifstream stream(file, std::ios::binary);
  std::string head(count, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(count));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  core::refuse_placeholder(file.string(), head);
  return head;
}

}  // namespace scaletrain::launcher
