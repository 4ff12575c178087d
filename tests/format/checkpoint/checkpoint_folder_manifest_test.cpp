#include "lib/format/checkpoint/checkpoint_folder_manifest.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kManifestRemedy =
    "\n  use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete";

const Manifest kManifest{.program = "scaletrain 0.1.0", .step = 12, .files = {{"a", {3, "abc"}}}};

std::string manifest_error(const fs::path& folder, const std::string& manifest) {
  test::write_bytes(folder / "manifest.json", manifest);
  return test::message_of<core::Error>([&] { read_manifest(folder); });
}

}  // namespace

TEST_CASE("a manifest is a page of JSON that ends with its own checksum") {
  const std::string body =
      "{\n \"format\": 2,\n \"program\": \"scaletrain 0.1.0\",\n \"step\": 12,\n \"files\": {\n"
      "  \"a\": {\n   \"bytes\": 3,\n   \"xxh3_128\": \"abc\"\n  }\n }";
  CHECK(render_manifest(kManifest) ==
        body + ",\n \"manifest_sha256\": \"" + core::Sha256().update(body).hex() + "\"\n}\n");
  const test::TemporaryFolder folder;
  test::write_bytes(folder.path / "manifest.json", render_manifest(kManifest));
  const Manifest read = read_manifest(folder.path);
  CHECK(read.program == "scaletrain 0.1.0");
  CHECK(read.step == 12);
  CHECK(read.files.at("a").bytes == 3);
  CHECK(read.files.at("a").sum == "abc");
}

TEST_CASE("a manifest of the first format says SHA-256, which is verified") {
  const test::TemporaryFolder run;
  Manifest manifest{.format = 1, .program = "scaletrain 0.1.0", .step = 12};
  manifest.files["a"] = sum_up("abc", Sum::kSha256);
  test::write_bytes(run.path / "a", "abc");
  test::write_bytes(run.path / "manifest.json", render_manifest(manifest));
  CHECK(verify_checkpoint(run.path).files.at("a").kind == Sum::kSha256);
  test::write_bytes(run.path / "a", "abd");
  CHECK(test::message_of<core::CheckpointError>([&] {
          verify_checkpoint(run.path);
        }).starts_with((run.path / "a").string() + ": has the SHA-256 a52d159f"));
}

TEST_CASE("a manifest of a newer format names its program") {
  const test::TemporaryFolder folder;
  CHECK(manifest_error(folder.path, R"({"format":3,"program":"scaletrain 9.0.0","more":[]})") ==
        folder.path.string() +
            ": was written by scaletrain 9.0.0, format 3; this program reads up to 2\n  use that "
            "program, or a newer one");
}

TEST_CASE("a changed manifest is detected by its checksum") {
  const test::TemporaryFolder folder;
  const std::string text = render_manifest(kManifest);
  const auto sum_of = [](const std::string& sealed) {
    return sealed.substr(sealed.size() - 4 - 64, 64);  // before `"`, newline, `}`, newline
  };
  Manifest other = kManifest;
  other.step = 13;
  CHECK(manifest_error(folder.path, test::replaced(text, "\"step\": 12", "\"step\": 13")) ==
        (folder.path / "manifest.json").string() + ": has the SHA-256 " +
            sum_of(render_manifest(other)) + " where " + sum_of(text) + " is written" +
            kManifestRemedy);
}

TEST_CASE("a manifest that is sealed and has an unknown key is refused") {
  const test::TemporaryFolder folder;
  const auto error_with = [&](const std::string& from, const std::string& to) {
    const std::string text = test::replaced(render_manifest(kManifest), from, to);
    const std::string body = text.substr(0, text.find(",\n \"manifest_sha256\""));
    return manifest_error(folder.path, fmt::format("{},\n \"manifest_sha256\": \"{}\"\n}}\n", body,
                                                   core::Sha256().update(body).hex()));
  };
  const std::string path = (folder.path / "manifest.json").string();
  const std::string unknown =
      ": is not a key of this format\n  the file is damaged or was changed by hand: use another "
      "copy";
  CHECK(error_with("\"step\"", "\"more\": 1, \"step\"") == path + ": /more" + unknown);
  CHECK(error_with("\"bytes\"", "\"more\": 1, \"bytes\"") == path + ": /files/a/more" + unknown);
  CHECK(error_with("12", "12") == "nothing was thrown");
}

TEST_CASE("an absent manifest, one without sense and one that reaches out are refused") {
  const test::TemporaryFolder folder;
  CHECK(test::message_of<core::CheckpointError>([&] { read_manifest(folder.path); }) ==
        folder.path.string() + ": has no manifest.json: it is not a complete checkpoint" +
            kManifestRemedy);
  const std::string path = (folder.path / "manifest.json").string();
  CHECK(
      manifest_error(folder.path, "") ==
      path +
          ": is not JSON at its byte 1\n  the file is damaged or was changed by hand: use another "
          "copy");
  CHECK(manifest_error(folder.path, std::string(32'000'001, ' ')) ==
        path + ": has 32000001 bytes\n  at most 32000000 bytes are read here");
  for (const std::string name : {"../a", "/etc/passwd", ".", "..", "", "manifest.json"}) {
    CAPTURE(name);
    Manifest evil = kManifest;
    evil.files = {{name, {1, "x"}}};
    CHECK(manifest_error(folder.path, render_manifest(evil)) ==
          path + ": names the file \"" + name +
              "\"\n  the files of a checkpoint are in its folder: do not use this checkpoint");
  }
}
