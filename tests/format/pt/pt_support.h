// Files of torch.save made by hand: a zip archive of stored entries, and the opcodes of a pickle.
#pragma once

#include <fmt/format.h>
#include <libdeflate.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scaletrain::test {

inline std::string little_endian(std::uint64_t number, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes && i < sizeof number; ++i) {
    text[i] = static_cast<char>(number >> 8 * i);
  }
  return text;
}

using ZipContents = std::vector<std::pair<std::string, std::string>>;  // name and contents

// Without records of 64 bits; `crcs` false: every CRC-32 is 0.
inline std::string zip_of(const ZipContents& contents, bool crcs = true) {
  std::string zip, directory;
  for (const auto& [name, bytes] : contents) {
    const std::string front =
        little_endian(20, 2) + little_endian(0, 8) +
        little_endian(crcs ? libdeflate_crc32(0, bytes.data(), bytes.size()) : 0, 4) +
        little_endian(bytes.size(), 4) + little_endian(bytes.size(), 4) +
        little_endian(name.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + front + little_endian(0, 10) +
                 little_endian(zip.size(), 4) + name;
    zip += "PK\x03\x04" + front + name + bytes;
  }
  const std::size_t begin = zip.size();
  const std::string count = little_endian(contents.size(), 2);
  return zip + directory + "PK\x05\x06" + little_endian(0, 4) + count + count +
         little_endian(directory.size(), 4) + little_endian(begin, 4) + little_endian(0, 2);
}

// A file of torch.save with this pickle and these storages.
inline std::string pt_of(const std::string& pickle, const ZipContents& storages) {
  ZipContents contents{{"a/data.pkl", pickle}, {"a/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) contents.emplace_back("a/data/" + key, bytes);
  contents.emplace_back("a/version", "3\n");
  return zip_of(contents);
}

// Opcodes.
inline std::string pickled_text(std::string_view text) {
  return fmt::format("X{}{}", little_endian(text.size(), 4), text);
}
inline std::string pickled_number(std::int64_t number) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(number), 8);
}
inline std::string pickled_numbers(const std::vector<std::int64_t>& numbers) {
  std::string text = "(";
  for (const std::int64_t number : numbers) text += pickled_number(number);
  return text + "t";
}
inline std::string pickled_global(const std::string& module, const std::string& name) {
  return fmt::format("c{}\n{}\n", module, name);
}

struct PickledView {
  std::string key = "0", type = "FloatStorage";
  std::int64_t elements = 6;
  std::int64_t first = 0;
  std::vector<std::int64_t> shape{2, 3}, strides{3, 1};
};

inline std::string pickled_view(const PickledView& view) {
  return pickled_global("torch._utils", "_rebuild_tensor_v2") + "((" + pickled_text("storage") +
         pickled_global("torch", view.type) + pickled_text(view.key) + pickled_text("cpu") +
         pickled_number(view.elements) + "tQ" + pickled_number(view.first) +
         pickled_numbers(view.shape) + pickled_numbers(view.strides) + "\x89" +
         pickled_global("collections", "OrderedDict") + ")RtR";
}

// A pickle of protocol 2 with that value.
inline std::string pickle_of(const std::string& value) { return "\x80\x02" + value + "."; }

// A dict of names and values, which are opcodes.
inline std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text = "}(";
  for (const auto& [name, value] : items) text += pickled_text(name) + value;
  return text + "u";
}

}  // namespace scaletrain::test
