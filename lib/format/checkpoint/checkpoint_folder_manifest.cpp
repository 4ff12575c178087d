#include "lib/format/checkpoint/checkpoint_folder_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/parallel.h"
#include "lib/core/printable.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/placeholder.h"
#include "lib/format/byte_reader.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/json_fields.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

// A hundred thousand pieces or so; a hostile one costs a second.
constexpr std::int64_t kMaxManifestBytes = 32'000'000;

// The names of manifest.json.
constexpr const char* kFormatKey = "format";
constexpr const char* kProgramKey = "program";
constexpr const char* kStepKey = "step";
constexpr const char* kFilesKey = "files";
constexpr const char* kBytesKey = "bytes";    // size of a file
constexpr const char* kXxh3Key = "xxh3_128";  // checksum of a file
constexpr const char* kSha256Key = "sha256";  // checksum of a file in format 1
constexpr const char* kTensorsKey = "tensors";
constexpr const char* kSealKey = "manifest_sha256";

// The end of a manifest whose text before it is `body`: the manifest's own checksum, so that a
// flipped bit in it is found too.
std::string seal(std::string_view body) {
  return fmt::format(",\n \"{}\": \"{}\"\n}}\n", kSealKey, core::Sha256().update(body).hex());
}

void check_seal(const std::string& text, const fs::path& path) {
  const std::size_t seal_bytes = seal("").size();
  const std::size_t body_bytes = text.size() < seal_bytes ? 0 : text.size() - seal_bytes;
  const std::string expected = seal(std::string_view(text).substr(0, body_bytes));
  if (text.substr(body_bytes) == expected) return;
  const auto sum = [](const std::string& sealed) {
    constexpr std::size_t kSumBytes = 64;
    constexpr std::size_t kAfterSum = 4;  // `"`, newline, `}`, newline
    return sealed.size() < kSumBytes + kAfterSum
               ? std::string("nothing")
               : core::printable(sealed.substr(sealed.size() - kSumBytes - kAfterSum, kSumBytes));
  };
  throw core::CheckpointError(path.string(),
                              fmt::format("has the SHA-256 {} where {} is written", sum(expected),
                                          sum(text.substr(body_bytes))),
                              kOtherCheckpoint);
}

void verify_file(const fs::path& path, const FileEntry& entry) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw core::CheckpointError(path.string(), "is missing", kOtherCheckpoint);
  }
  if (error) core::throw_read_fault(path, error.value());
  if (!fs::is_regular_file(status)) {
    throw core::CheckpointError(path.string(), "is not a regular file", kOtherCheckpoint);
  }
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes != static_cast<std::uintmax_t>(entry.bytes)) {
    core::refuse_placeholder_file<core::CheckpointError>(path.string());
    throw core::CheckpointError(
        path.string(), fmt::format("has {} bytes, its manifest says {}", bytes, entry.bytes),
        kOtherCheckpoint);
  }
  require_sum(path.string(), hash_file(path, entry.kind), entry);
}

}  // namespace

const char* sum_key(Sum kind) { return kind == Sum::kXxh3 ? kXxh3Key : kSha256Key; }

void require_sum(const std::string& place, const FileEntry& found, const FileEntry& listed) {
  if (found.sum == listed.sum) return;
  throw core::CheckpointError(
      place,
      fmt::format("has the {} {}, its manifest says {}",
                  listed.kind == Sum::kXxh3 ? "XXH3-128" : "SHA-256", found.sum, listed.sum),
      kOtherCheckpoint);
}

std::string render_manifest(const Manifest& manifest) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& [name, entry] : manifest.files) {
    files[name] = {{kBytesKey, entry.bytes}, {sum_key(entry.kind), entry.sum}};
  }
  const bool is_cut = !manifest.tensors.empty();
  const nlohmann::ordered_json json = {{kFormatKey, kCheckpointFormat},
                                       {kProgramKey, manifest.program},
                                       {kStepKey, manifest.step},
                                       {kFilesKey, files}};
  std::string body = json.dump(1);
  body.resize(body.size() - 2);  // newline and }
  if (is_cut) body += fmt::format(",\n \"{}\": {}", kTensorsKey, render_tables(manifest.tensors));
  std::string text = body + seal(body);
  if (std::ssize(text) <= kMaxManifestBytes) return text;
  throw core::InternalError(
      "render_manifest",
      fmt::format("{} bytes, of which at most {} would be read", text.size(), kMaxManifestBytes));
}

Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestName;
  if (core::type_at(path) == fs::file_type::not_found) {
    throw core::CheckpointError(checkpoint.string(),
                                "has no manifest.json: it is not a complete checkpoint",
                                kOtherCheckpoint);
  }
  Manifest manifest =
      parse_manifest(core::read_file(path, kMaxManifestBytes, core::ExitCode::kData), path);
  check_tables(manifest.tensors, manifest.files, path.string());
  return manifest;
}

Manifest parse_manifest(const std::string& text, const fs::path& path) {
  const nlohmann::json json = parse_object(text, path.string());
  JsonFields fields(json, path.string());
  Manifest manifest;
  const std::int64_t format = fields.integer(kFormatKey, 1);
  manifest.program = fields.text(kProgramKey);
  // Before the checksum: how a newer format seals its manifest is not known here.
  if (format > kCheckpointFormat) {
    throw core::CheckpointError(
        path.parent_path().string(),
        fmt::format("was written by {}, format {}; this program reads up to {}",
                    core::printable(manifest.program), format, kCheckpointFormat),
        "use that program, or a newer one");
  }
  check_seal(text, path);
  fields.text(kSealKey);
  manifest.format = format;
  manifest.step = fields.integer(kStepKey, 0);
  const nlohmann::json& files = fields.value(kFilesKey);
  const bool is_cut = fields.has(kTensorsKey);
  if (is_cut) manifest.tensors = parse_tables(fields.value(kTensorsKey), path.string());
  fields.done();
  const std::string files_pointer = std::string("/") + kFilesKey;
  // Throws if it is not an object.
  [[maybe_unused]] const JsonFields checked(files, path.string(), files_pointer);
  for (const auto& item : files.items()) {
    const std::string& name = item.key();
    if (!is_plain_name(name)) {
      throw core::CheckpointError(
          path.string(), fmt::format("names the file \"{}\"", core::printable(name)),
          "the files of a checkpoint are in its folder: do not use this checkpoint");
    }
    JsonFields entry(item.value(), path.string(), fmt::format("{}/{}", files_pointer, name));
    const Sum kind = entry.has(kSha256Key) ? Sum::kSha256 : Sum::kXxh3;
    manifest.files[name] = {entry.integer(kBytesKey, 0), entry.text(sum_key(kind)), kind};
    entry.done();
  }
  return manifest;
}

void require_listed(const fs::path& checkpoint, const Manifest& manifest, const std::string& name) {
  if (manifest.files.contains(name)) return;
  throw core::CheckpointError((checkpoint / kManifestName).string(),
                              fmt::format("names no {}", name), kOtherCheckpoint);
}

std::set<std::string> piece_files(const Manifest& manifest) {
  std::set<std::string> pieces;
  for (const auto& [file, table] : manifest.tensors) {
    for (const auto& [name, tensor] : table) {
      for (const StoredPiece& stored : tensor.pieces) pieces.insert(stored.file);
    }
  }
  return pieces;
}

std::vector<std::string> tensor_files(const Manifest& manifest) {
  const std::set<std::string> pieces = piece_files(manifest);
  std::vector<std::string> files;
  for (const auto& [file, entry] : manifest.files) {
    if (file.ends_with(".safetensors") && !pieces.contains(file)) files.push_back(file);
  }
  for (const auto& [file, table] : manifest.tensors) files.push_back(file);
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_listed_file(const fs::path& checkpoint, const Manifest& manifest,
                             const std::string& name) {
  constexpr std::int64_t kMaxBytes = 64 << 20;
  require_listed(checkpoint, manifest, name);
  std::string text = core::read_file(checkpoint / name, kMaxBytes, core::ExitCode::kData);
  const FileEntry& entry = manifest.files.at(name);
  require_sum((checkpoint / name).string(), sum_up(text, entry.kind), entry);
  return text;
}

Manifest verify_checkpoint(const fs::path& checkpoint) {
  Manifest manifest = read_manifest(checkpoint);
  for (const std::string& name : core::names_in(checkpoint)) {
    if (name != kManifestName && manifest.files.count(name) == 0) {
      throw core::CheckpointError((checkpoint / name).string(), "is not in the manifest",
                                  "move it out of the checkpoint's folder");
    }
  }
  const std::vector<FileEntries::value_type> files(manifest.files.begin(), manifest.files.end());
  core::for_each_index(std::ssize(files), kReaders, [&](std::int64_t i) {
    const auto& [name, entry] = files[static_cast<std::size_t>(i)];
    verify_file(checkpoint / name, entry);
  });
  return manifest;
}

}  // namespace scaletrain::format
