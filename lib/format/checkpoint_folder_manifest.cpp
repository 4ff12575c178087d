#include "lib/format/checkpoint_folder_manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/checkpoint_folder_names.h"
#include "lib/format/json_fields.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy =
    "use another checkpoint; `scaletrain checkpoint verify RUN` tells which are whole";

// The end of a manifest whose text before it is `body`: the manifest's own checksum, so that a
// flipped bit in it is found too.
std::string seal(std::string_view body) {
  return fmt::format(",\n \"manifest_sha256\": \"{}\"\n}}\n", core::Sha256().update(body).hex());
}

void check_seal(const std::string& text, const fs::path& path) {
  const std::size_t seal_bytes = seal("").size();
  const std::size_t body_bytes = text.size() < seal_bytes ? 0 : text.size() - seal_bytes;
  const std::string expected = seal(std::string_view(text).substr(0, body_bytes));
  if (text.substr(body_bytes) == expected) return;
  const auto sum = [](const std::string& sealed) {
    constexpr std::size_t kSumBytes = 64, kAfterSum = 4;  // `"`, newline, `}`, newline
    return sealed.size() < kSumBytes + kAfterSum
               ? std::string("nothing")
               : core::escape_control(
                     sealed.substr(sealed.size() - kSumBytes - kAfterSum, kSumBytes));
  };
  throw core::CheckpointError(path.string(),
                              fmt::format("has the SHA-256 {} where {} is written", sum(expected),
                                          sum(text.substr(body_bytes))),
                              kRemedy);
}

// A name that stays inside the checkpoint's folder.
bool is_plain(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name != kManifestName &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

void verify_file(const fs::path& path, const FileEntry& entry) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) throw core::CheckpointError(path.string(), "is missing", kRemedy);
  if (!fs::is_regular_file(status)) {
    throw core::CheckpointError(path.string(), "is not a regular file", kRemedy);
  }
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes != static_cast<std::uintmax_t>(entry.bytes)) {
    throw core::CheckpointError(
        path.string(), fmt::format("has {} bytes, its manifest says {}", bytes, entry.bytes),
        kRemedy);
  }
  const FileEntry found = hash_file(path);
  if (found.sha256 != entry.sha256) {
    throw core::CheckpointError(
        path.string(),
        fmt::format("has the SHA-256 {}, its manifest says {}", found.sha256, entry.sha256),
        kRemedy);
  }
}

}  // namespace

std::string render_manifest(const Manifest& manifest) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& [name, entry] : manifest.files) {
    files[name] = {{"bytes", entry.bytes}, {"sha256", entry.sha256}};
  }
  const nlohmann::ordered_json json = {{"format", manifest.format},
                                       {"program", manifest.program},
                                       {"step", manifest.step},
                                       {"files", files}};
  std::string body = json.dump(1);
  body.resize(body.size() - 2);  // newline and }
  return body + seal(body);
}

Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestName;
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw core::CheckpointError(checkpoint.string(),
                                "has no manifest.json: it is not a whole checkpoint", kRemedy);
  }
  constexpr std::int64_t kMaxBytes = 1 << 20;
  const std::string text = core::read_file(path, kMaxBytes, core::ExitCode::kData);
  const nlohmann::json json = parse_object(text, path.string());
  JsonFields fields(json, path.string());
  Manifest manifest;
  const std::int64_t format = fields.integer("format", 1);
  manifest.program = fields.text("program");
  // Before the checksum: how a newer format seals its manifest is not known here.
  if (format > kCheckpointFormat) {
    throw core::CheckpointError(
        checkpoint.string(),
        fmt::format("was written by {}, format {}; this program reads up to {}",
                    core::escape_control(manifest.program), format, kCheckpointFormat),
        "use that program, or a newer one");
  }
  check_seal(text, path);
  fields.text("manifest_sha256");
  manifest.step = fields.integer("step", 0);
  const nlohmann::json& files = fields.value("files");
  fields.done();
  // Throws where it is no object.
  [[maybe_unused]] const JsonFields checked(files, path.string(), "/files");
  for (const auto& item : files.items()) {
    const std::string& name = item.key();
    if (!is_plain(name)) {
      throw core::CheckpointError(path.string(),
                                  fmt::format("names the file \"{}\"", core::escape_control(name)),
                                  "a file of a checkpoint lies in its folder: do not use this one");
    }
    JsonFields entry(item.value(), path.string(), "/files/" + name);
    manifest.files[name] = {entry.integer("bytes", 0), entry.text("sha256")};
    entry.done();
  }
  return manifest;
}

Manifest verify_checkpoint(const fs::path& checkpoint) {
  Manifest manifest = read_manifest(checkpoint);
  for (const std::string& name : names_in(checkpoint)) {
    if (name != kManifestName && manifest.files.count(name) == 0) {
      throw core::CheckpointError((checkpoint / name).string(), "is not in the manifest",
                                  "move it out of the checkpoint's folder");
    }
  }
  for (const auto& [name, entry] : manifest.files) verify_file(checkpoint / name, entry);
  return manifest;
}

}  // namespace scaletrain::format
