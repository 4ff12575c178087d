#include "lib/format/pt/pt_file.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/format/safetensors/safetensors_header.h"

namespace scaletrain::format {
namespace {

constexpr std::string_view kPickleName = "/data.pkl";
constexpr int kNewestVersion = 10;  // PyTorch's archive version: kMaxSupportedFileFormatVersion
constexpr const char* kSaveAgain =
    "open it in Python and save it again: torch.save(torch.load(FILE, weights_only=True), FILE)";

// Returns the first bytes of a file; fewer if it is shorter.
std::string first_bytes(const ByteReader& file) {
  constexpr std::int64_t kFirst = 4;
  std::string bytes(static_cast<std::size_t>(std::min(kFirst, file.bytes())), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

bool is_zip(const std::string& first) { return first.starts_with("PK\x03\x04"); }
// The number that torch.save wrote first. Two bytes would not do: a safetensors file whose header
// has 640 bytes begins with 80 02.
bool is_bare_pickle(const std::string& first) { return first == "\x80\x02\x8a\x0a"; }

bool is_contiguous(const PtTensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i > 0; --i) {
    if (tensor.shape[i - 1] == 0) return true;
    if (tensor.shape[i - 1] != 1 && tensor.strides[i - 1] != expected) return false;
    expected *= tensor.shape[i - 1];
  }
  return true;
}

}  // namespace

PtFile::PtFile(const std::filesystem::path& path) : place_(path.string()), file_(path) {
  const std::string first = first_bytes(file_);
  if (is_bare_pickle(first)) {
    throw core::CheckpointError(place_, "was saved by PyTorch before 1.6, or without its zip form",
                                kSaveAgain);
  }
  if (!is_zip(first)) {
    core::refuse_placeholder_file<core::CheckpointError>(place_);
    throw core::CheckpointError(place_, "is not a file of torch.save", kZipRemedy);
  }
  entries_ = read_zip_directory(file_, place_);
  std::sort(entries_.begin(), entries_.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
  const std::string root = find_root();
  check_stored();
  check_versions(root);
  const std::string pickle_name = fmt::format("{}{}", root, kPickleName);
  std::string bytes = read_entry(pickle_name, kMaxPickleBytes);
  found_ = find_pt_tensors(
      read_pickle(std::move(bytes), fmt::format("{}: {}", place_, core::printable(pickle_name))));
  find_storages(root);
}

// Returns the folder of the archive that contains all entries.
std::string PtFile::find_root() const {
  std::vector<std::string> roots;
  for (const ZipEntry& entry : entries_) {
    if (entry.name.ends_with("/constants.pkl")) {
      throw core::CheckpointError(
          place_, "is a TorchScript program: it holds code",
          "save the state_dict() of the model by torch.save, or train it as model \"torchscript\"");
    }
    if (!entry.name.ends_with(kPickleName)) continue;
    roots.push_back(entry.name.substr(0, entry.name.size() - kPickleName.size()));
  }
  if (roots.size() != 1) {
    throw core::CheckpointError(
        place_, fmt::format("has {} entries called data.pkl, where 1 is expected", roots.size()),
        kZipRemedy);
  }
  return roots.front();
}

void PtFile::check_stored() const {
  for (const ZipEntry& entry : entries_) {
    if (entry.is_stored) continue;
    throw core::CheckpointError(
        place_, fmt::format("entry \"{}\" is compressed", core::printable(entry.name)),
        "torch.save compresses nothing: unpack the archive and pack it without compression");
  }
}

const ZipEntry* PtFile::find_entry(const std::string& name) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const ZipEntry& entry, const std::string& wanted) { return entry.name < wanted; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

std::string PtFile::read_entry(const std::string& name, std::int64_t max_bytes) const {
  const ZipEntry* const entry = find_entry(name);
  if (entry == nullptr || entry->bytes > max_bytes) {
    throw core::CheckpointError(
        place_,
        entry == nullptr ? fmt::format("has no entry \"{}\"", core::printable(name))
                         : fmt::format("entry \"{}\" has {} bytes, where at most {} are read",
                                       core::printable(name), entry->bytes, max_bytes),
        kZipRemedy);
  }
  std::string text(static_cast<std::size_t>(entry->bytes), '\0');
  file_.read(entry->begin, std::as_writable_bytes(std::span(text)));
  check_sum(*entry, libdeflate_crc32(0, text.data(), text.size()));
  return text;
}

void PtFile::check_versions(const std::string& root) const {
  constexpr std::int64_t kMaxBytes = 100;
  std::string version = read_entry(root + "/version", kMaxBytes);
  if (version.ends_with('\n')) version.pop_back();
  const auto number = core::parse_number<int>(version);
  if (!number || *number < 1 || *number > kNewestVersion) {
    throw core::CheckpointError(place_,
                                fmt::format("has the version \"{}\", where 1 to {} are read",
                                            core::printable(version), kNewestVersion),
                                kSaveAgain);
  }
  if (find_entry(root + "/byteorder") == nullptr) return;  // PyTorch before 2.1: little
  const std::string order = read_entry(root + "/byteorder", kMaxBytes);
  if (order != "little") {
    throw core::CheckpointError(
        place_,
        fmt::format(R"(has the byte order "{}"; only "little" is read)", core::printable(order)),
        kSaveAgain);
  }
}

void PtFile::find_storages(const std::string& root) {
  storages_.reserve(found_.storages.size());
  for (const PtStorage& storage : found_.storages) {
    const std::string name = fmt::format("{}/data/{}", root, storage.key);
    const ZipEntry* const entry = find_entry(name);
    if (entry == nullptr || entry->bytes != storage.bytes) {
      throw core::CheckpointError(
          place_,
          fmt::format("storage \"{}\" has {} bytes by byte {} of the pickle, {}",
                      core::printable(name), storage.bytes, storage.at,
                      entry == nullptr ? "and is not there"
                                       : fmt::format("the archive has {}", entry->bytes)),
          kZipRemedy);
    }
    storages_.push_back(entry);
  }
  checked_.assign(storages_.size(), false);
}

void PtFile::check_sum(const ZipEntry& entry, std::uint32_t sum) const {
  if (entry.crc32 == 0 || entry.crc32 == sum) return;
  throw core::CheckpointError(
      place_,
      fmt::format("entry \"{}\" has the CRC-32 {:08x}, the archive says {:08x}",
                  core::printable(entry.name), sum, entry.crc32),
      kZipRemedy);
}

void PtFile::check_storage(std::size_t storage) const {
  if (checked_[storage]) return;
  const ZipEntry& entry = *storages_[storage];
  if (entry.crc32 != 0) {
    constexpr std::int64_t kSumPiece = 1 << 20;
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kSumPiece, entry.bytes)));
    std::uint32_t sum = 0;
    for (std::int64_t done = 0; done < entry.bytes;) {
      const auto piece = std::span(buffer).first(static_cast<std::size_t>(
          std::min(static_cast<std::int64_t>(buffer.size()), entry.bytes - done)));
      file_.read(entry.begin + done, piece);
      sum = libdeflate_crc32(sum, piece.data(), piece.size());
      done += static_cast<std::int64_t>(piece.size());
    }
    check_sum(entry, sum);
  }
  checked_[storage] = true;
}

void PtFile::read(const PtTensor& tensor, std::span<std::byte> out, std::int64_t offset) const {
  const std::int64_t element_bytes = dtype_bytes(tensor.dtype);
  const auto wanted = static_cast<std::int64_t>(out.size());
  if (offset < 0 || wanted > pt_tensor_bytes(tensor) - offset || offset % element_bytes != 0 ||
      wanted % element_bytes != 0) {
    throw core::InternalError(
        "PtFile::read", fmt::format("{} bytes from byte {} of tensor \"{}\", which has {}", wanted,
                                    offset, tensor.name, pt_tensor_bytes(tensor)));
  }
  if (wanted == 0) return;
  const ZipEntry& entry = *storages_[tensor.storage];
  if (!is_contiguous(tensor)) {
    check_storage(tensor.storage);
    return gather(tensor, out, offset);
  }
  const bool is_whole = wanted == entry.bytes && !checked_[tensor.storage];
  if (!is_whole) check_storage(tensor.storage);
  file_.read(entry.begin + tensor.first * element_bytes + offset, out);
  if (is_whole) {  // one pass over the bytes is enough
    check_sum(entry, libdeflate_crc32(0, out.data(), out.size()));
    checked_[tensor.storage] = true;
  }
}

void PtFile::gather(const PtTensor& tensor, std::span<std::byte> out, std::int64_t offset) const {
  const std::int64_t element_bytes = dtype_bytes(tensor.dtype);
  const auto step = static_cast<std::size_t>(element_bytes);
  const std::size_t dimensions = tensor.shape.size();
  std::int64_t reach = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    reach += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  std::vector<std::byte> part(static_cast<std::size_t>(reach * element_bytes));
  file_.read(storages_[tensor.storage]->begin + tensor.first * element_bytes, part);
  // Index of the element at `offset`, and its position.
  std::vector<std::int64_t> index(dimensions);
  std::int64_t rest = offset / element_bytes, position = 0;
  for (std::size_t i = dimensions; i > 0; --i) {
    index[i - 1] = rest % tensor.shape[i - 1];
    rest /= tensor.shape[i - 1];
    position += index[i - 1] * tensor.strides[i - 1];
  }
  for (std::size_t done = 0; done < out.size(); done += step) {
    std::memcpy(out.data() + done, part.data() + static_cast<std::size_t>(position) * step, step);
    for (std::size_t i = dimensions; i > 0; --i) {
      position += tensor.strides[i - 1];
      if (++index[i - 1] < tensor.shape[i - 1]) break;
      position -= tensor.strides[i - 1] * tensor.shape[i - 1];
      index[i - 1] = 0;
    }
  }
}

bool looks_like_pt(const std::filesystem::path& path) {
  const std::string first = first_bytes(ByteReader(path));
  return is_zip(first) || is_bare_pickle(first);
}

}  // namespace scaletrain::format
