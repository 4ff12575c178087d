// Tars written by hand, so that a test can make any mistake in them; a temporary folder for them;
// the text of what a body throws.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::format {

struct TarFields {
  std::string name = {};
  char type = '0';
  std::string size = {};  // as in the field; "": octal of the data's size
  std::string magic{
      "ustar\0"
      "00",
      8};
  std::string prefix = {};
  std::string link = {};  // what it links to
};

// One header block with its checksum.
inline std::string tar_header(const TarFields& fields, std::int64_t bytes) {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, fields.name.substr(0, 100));
  put(100, "0000644");
  put(124, fields.size.empty() ? fmt::format("{:011o}", bytes) : fields.size);
  put(136, "00000000000");
  put(148, "        ");
  put(156, std::string(1, fields.type));
  put(157, fields.link);
  put(257, fields.magic);
  put(345, fields.prefix);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

inline std::string tar_entry(const TarFields& fields, const std::string& data) {
  std::string text = tar_header(fields, static_cast<std::int64_t>(data.size())) + data;
  text.resize((text.size() + 511) / 512 * 512, '\0');
  return text;
}

inline std::string tar_member(const std::string& name, const std::string& data) {
  return tar_entry(TarFields{.name = name}, data);
}

inline std::string tar_end() { return std::string(1024, '\0'); }

template <class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const core::DataError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("not a DataError: ") + error.what();
  }
  return "nothing was thrown";
}

}  // namespace scaletrain::format
