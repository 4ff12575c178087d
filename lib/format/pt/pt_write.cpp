#include "lib/format/pt/pt_write.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <libdeflate.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/format/pt/pickle_globals.h"
#include "lib/format/safetensors/safetensors_header.h"

namespace scaletrain::format {
namespace {

constexpr std::uint64_t kMostIn32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostIn16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::string_view kFolder = "archive/";
// As torch.save: tensors of a mapped file are aligned for the processor.
constexpr std::uint64_t kAlignment = 64;

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

std::string little(std::uint64_t number, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes && i < sizeof number; ++i) {
    text[i] = static_cast<char>(number >> 8 * i);
  }
  return text;
}

// The opcodes that push a value: pickle_opcodes.h names them.
std::string pickled(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  if (number < 256) return joined({"K", little(bits, 1)});
  if (number < 65536) return joined({"M", little(bits, 2)});
  if (number <= std::numeric_limits<std::int32_t>::max()) return joined({"J", little(bits, 4)});
  return joined({"\x8a\x08", little(bits, 8)});
}

std::string pickled(std::string_view text) {
  return fmt::format("X{}{}", little(text.size(), 4), text);
}

std::string pickled(const std::vector<std::int64_t>& numbers) {
  std::string text = "(";
  for (const std::int64_t number : numbers) text += pickled(number);
  text += 't';
  return text;
}

// "torch._utils._rebuild_tensor_v2" is module torch._utils and name _rebuild_tensor_v2.
std::string pickled(const PickleGlobal& global) {
  const std::size_t dot = global.name.rfind('.');
  return fmt::format("c{}\n{}\n", global.name.substr(0, dot), global.name.substr(dot + 1));
}

std::string pickled_kind(PickleGlobalKind kind) { return pickled(*find_pickle_global(kind, "")); }

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i > 1; --i) {
    strides[i - 2] = strides[i - 1] * std::max<std::int64_t>(shape[i - 1], 1);
  }
  return strides;
}

// Pickles the call that rebuilds a tensor; dtypes without a typed storage use a byte storage.
std::string pickled_tensor(std::string_view dtype, const std::vector<std::int64_t>& shape,
                           const std::string& key, std::size_t bytes) {
  const PickleGlobal* const typed = find_pickle_global(PickleGlobalKind::kStorage, dtype);
  const PickleGlobal* const storage =
      typed != nullptr ? typed : find_pickle_global(PickleGlobalKind::kStorage, "");
  const auto elements =
      static_cast<std::int64_t>(bytes) / (typed != nullptr ? dtype_bytes(dtype) : 1);
  std::string text = pickled_kind(typed != nullptr ? PickleGlobalKind::kRebuildTensor
                                                   : PickleGlobalKind::kRebuildAs);
  text += fmt::format("(({}{}{}{}{}tQ", pickled(std::string_view("storage")), pickled(*storage),
                      pickled(key), pickled(std::string_view("cpu")), pickled(elements));
  text += fmt::format("{}{}{}\x89", pickled(std::int64_t{0}), pickled(shape),
                      pickled(contiguous_strides(shape)));
  text += fmt::format("{})R", pickled_kind(PickleGlobalKind::kOrderedDict));
  if (typed == nullptr) text += pickled(*find_pickle_global(PickleGlobalKind::kDtype, dtype));
  text += "tR";
  return text;
}

}  // namespace

PtWriter::PtWriter(core::Disk& disk, const std::filesystem::path& path, std::int64_t expected_bytes)
    : file_(disk, path, expected_bytes), pickle_("\x80\x02}(") {}

void PtWriter::add(const std::string& name, std::string_view dtype,
                   const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes) {
  std::int64_t expected = dtype_bytes(dtype);
  for (const std::int64_t size : shape) expected *= size;
  const bool is_known = find_pickle_global(PickleGlobalKind::kDtype, dtype) != nullptr;
  if (!is_known || static_cast<std::size_t>(expected) != bytes.size() || !core::is_utf8(name) ||
      names_.count(name) != 0) {
    throw core::InternalError(
        "PtWriter::add",
        fmt::format("tensor \"{}\" of dtype {} and shape [{}] comes with {}", name, dtype,
                    fmt::join(shape, ","), core::counted(std::ssize(bytes), "byte")));
  }
  const std::string key = std::to_string(names_.size());
  names_.insert(name);
  pickle_ += pickled(std::string_view(name));
  pickle_ += pickled_tensor(dtype, shape, key, bytes.size());
  write_entry(fmt::format("data/{}", key), bytes);
}

FileEntry PtWriter::finish() {
  pickle_ += "u.";
  write_text("data.pkl", pickle_);
  write_text("byteorder", "little");
  write_text("version", "3\n");
  write_directory();
  return file_.finish();
}

void PtWriter::write(std::string_view bytes) {
  file_.write(std::as_bytes(std::span(bytes)));
  position_ += bytes.size();
}

void PtWriter::write_text(const std::string& name, std::string_view text) {
  write_entry(name, std::as_bytes(std::span(text)));
}

// The record before an entry and its record in the directory (PKWARE, APPNOTE.TXT, 4.3.7, 4.3.12);
// numbers above 32 bits are in an extra field (4.5.3).
void PtWriter::write_entry(const std::string& name, std::span<const std::byte> bytes) {
  const std::string full_name = fmt::format("{}{}", kFolder, name);
  const std::uint64_t size = bytes.size(), header = position_;
  const bool is_large = size >= kMostIn32, is_far = header >= kMostIn32;
  const std::string version = little(is_large || is_far ? 45 : 20, 2);
  const std::string narrow_size = little(std::min(size, kMostIn32), 4);
  // Version needed, flags (names are UTF-8), method (stored), time and date (none).
  const std::string front = joined({version, little(0x0800, 2), little(0, 6),
                                    little(libdeflate_crc32(0, bytes.data(), size), 4), narrow_size,
                                    narrow_size, little(full_name.size(), 2)});
  std::string wide;
  if (is_large) wide = joined({little(1, 2), little(16, 2), little(size, 8), little(size, 8)});
  constexpr std::uint64_t kHeaderBytes = 30, kExtraHead = 4;
  const std::uint64_t before = header + kHeaderBytes + full_name.size() + wide.size() + kExtraHead;
  const std::uint64_t padding = (kAlignment - before % kAlignment) % kAlignment;
  // "FB" is PyTorch's own kind of an extra field.
  const std::string extra = joined({wide, "FB", little(padding, 2), std::string(padding, 'Z')});
  write(joined({"PK\x03\x04", front, little(extra.size(), 2), full_name, extra}));
  file_.write(bytes);
  position_ += size;

  std::string far;
  if (is_large) far = joined({little(size, 8), little(size, 8)});
  if (is_far) far += little(header, 8);
  if (!far.empty()) far = joined({little(1, 2), little(far.size(), 2), far});
  // After the sizes: no comment, disk 0, no attributes.
  directory_ += joined({"PK\x01\x02", version, front, little(far.size(), 2), little(0, 10),
                        little(std::min(header, kMostIn32), 4), full_name, far});
  ++count_;
}

// The directory and, as torch.save does, end records of 64 and of 32 bits (4.3.14 to 4.3.16).
void PtWriter::write_directory() {
  const std::uint64_t begin = position_, bytes = directory_.size();
  write(directory_);
  const std::uint64_t wide_begin = position_;
  write(joined({"PK\x06\x06", little(44, 8), little(45, 2), little(45, 2), little(0, 8),
                little(count_, 8), little(count_, 8), little(bytes, 8), little(begin, 8)}));
  write(joined({"PK\x06\x07", little(0, 4), little(wide_begin, 8), little(1, 4)}));
  const std::string count = little(std::min(count_, kMostIn16), 2);
  write(joined({"PK\x05\x06", little(0, 4), count, count, little(std::min(bytes, kMostIn32), 4),
                little(std::min(begin, kMostIn32), 4), little(0, 2)}));
}

}  // namespace scaletrain::format
