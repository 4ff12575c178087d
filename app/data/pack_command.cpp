#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/image_kind.h"
#include "app/data/files/in_order.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/pack_sources.h"
#include "app/data/files/set_classes.h"
#include "app/data/files/shard_writer.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/philox.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/data/image/decode.h"
#include "lib/data/image/encode.h"
#include "lib/data/image/resize.h"
#include "lib/data/set/classes_file.h"
#include "lib/format/tar/tar.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

struct PackOptions {
  std::string source, classes_file, reencode;
  ShardOptions shards;
  std::int64_t resize = 0;
  std::uint64_t seed = 0;
  bool in_file_order = false, skip_bad = false, as_json = false;
  int threads = 0;
};

// One image, ready to be written; or why it cannot be.
struct PackedImage {
  std::string extension, bytes;
  std::string problem;
};

// Reads images and, if requested, decodes, resizes and re-encodes them; for one thread.
class Packer {
 public:
  Packer(const PackOptions& options, std::optional<data::Encoding> encoding)
      : resize_(options.resize),
        skip_bad_(options.skip_bad),
        encoding_(encoding),
        // Re-encoded images lose their EXIF orientation, so the decoder applies it.
        decoder_({.exif_orientation = encoding.has_value()}) {}

  PackedImage pack(const std::string& path) {
    PackedImage packed;
    try {
      std::string file = core::read_file(path, format::kMaxMemberBytes, core::ExitCode::kData);
      packed.extension = take_image(file, path);
      if (packed.extension.empty()) {
        core::refuse_placeholder(path, file);
        throw std::invalid_argument("its first bytes match no image format");
      }
      if (!encoding_ && skip_bad_) decoder_.decode(file, image_);
      packed.bytes = encoding_ ? encode(file, packed.extension) : file;
    } catch (const core::Error& error) {
      packed.problem = error.found();
    } catch (const std::invalid_argument& error) {
      packed.problem = fmt::format("the image is damaged: {}", error.what());
    }
    return packed;
  }

 private:
  std::string encode(const std::string& file, std::string& extension) {
    decoder_.decode(file, image_);
    const std::int64_t shorter = std::min(image_.width, image_.height);
    extension = encoding_->extension();
    if (resize_ == 0 || shorter <= resize_) return data::encode(image_, *encoding_);
    const auto scaled = [&](std::int64_t side) {  // rounded to the nearest
      return (2 * side * resize_ + shorter) / (2 * shorter);
    };
    resizer_.resize(
        image_,
        data::stretched(image_.width, image_.height, scaled(image_.width), scaled(image_.height)),
        resized_);
    return data::encode(resized_, *encoding_);
  }

  std::int64_t resize_;
  bool skip_bad_;
  std::optional<data::Encoding> encoding_;
  data::Decoder decoder_;
  data::Resizer resizer_;
  data::Image image_, resized_;
};

void shuffle(std::vector<PackItem>& items, std::uint64_t seed) {
  core::Philox random(seed, core::DrawPurpose::kShardOrder, 0, 0);
  for (std::size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[random.below(left)]);
  }
}

// The classes that the folder of the shards has already.
std::vector<std::string> classes_there(const storage::Stores& stores, const PackOptions& options) {
  return data::read_classes(options.shards.folder, stores.of(options.shards.folder));
}

PackSource read_source(const storage::Stores& stores, const PackOptions& options) {
  std::vector<std::string> classes = classes_there(stores, options);
  if (!options.classes_file.empty()) {
    std::vector<std::string> given = data::read_classes_file(options.classes_file);
    if (!classes.empty() && classes != given) {
      throw core::UsageError(
          "--classes", fmt::format("differs from classes.json in {}", options.shards.folder),
          "all shards of a folder must have the same classes: choose another folder");
    }
    classes = std::move(given);
  }
  PackSource source = read_pack_source(options.source, classes);
  check_classes(stores, options.shards.folder, source.classes);
  if (!options.in_file_order) shuffle(source.items, options.seed);
  return source;
}

void report(const PackOptions& options, const PackSource& source,
            const std::vector<WrittenShard>& shards, const nlohmann::ordered_json& skipped) {
  const std::size_t samples = source.items.size() - skipped.size();
  if (!options.as_json) {
    const std::string others = data::shown_files(source.left_alone);
    print(fmt::format(
        "packed {} of {} into {} in {}{}{}\n", core::counted(samples, "sample"),
        core::counted(std::ssize(source.classes), "class"),
        core::counted(std::ssize(shards), "shard"), core::shown_path(options.shards.folder),
        skipped.empty() ? "" : fmt::format("; skipped {}", skipped.size()),
        others.empty() ? ""
                       : fmt::format("; these files are not images and are ignored: {}", others)));
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const WrittenShard& shard : shards) {
    list.push_back({{"shard", shard.path},
                    {"samples", shard.samples},
                    {"bytes", shard.bytes},
                    {"sha256", shard.sha256}});
  }
  print_json({{"samples", samples},
              {"classes", source.classes.size()},
              {"shards", list},
              {"skipped", skipped},
              {"left_alone", source.left_alone}});
}

void run_pack(const PackOptions& options) {
  std::optional<data::Encoding> encoding;
  if (!options.reencode.empty() || options.resize > 0) {
    encoding =
        data::parse_encoding(options.reencode.empty() ? "jpeg:90" : options.reencode, "--reencode");
  }
  const storage::Stores stores;
  const PackSource source = read_source(stores, options);
  const auto count = static_cast<std::int64_t>(source.items.size());
  const int threads = resolve_threads(options.threads);
  std::vector<std::unique_ptr<Packer>> packers;
  packers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) packers.push_back(std::make_unique<Packer>(options, encoding));

  ShardWriter writer(stores, options.shards);
  writer.claim_classes(source.classes);
  observe::WorkProgress progress(STDERR_FILENO, "packing", count);
  nlohmann::ordered_json skipped = nlohmann::ordered_json::array();
  in_order<PackedImage>(
      count, threads,
      [&](std::int64_t i, int thread) {
        return packers[static_cast<std::size_t>(thread)]->pack(
            source.items[static_cast<std::size_t>(i)].path);
      },
      [&](std::int64_t i, const PackedImage& image) {
        const PackItem& item = source.items[static_cast<std::size_t>(i)];
        progress.add(1, static_cast<std::int64_t>(image.bytes.size()));
        if (image.problem.empty()) {
          writer.add(item.key, {{image.extension, image.bytes}, {"cls", item.label}});
          return;
        }
        if (!options.skip_bad) {
          throw core::DataError(item.path, image.problem,
                                "--skip-bad skips files that cannot be packed, and lists them");
        }
        core::warn("{}: {}: skipped", item.path, image.problem);
        skipped.push_back({{"path", item.path}, {"problem", image.problem}});
      });
  const std::vector<WrittenShard>& shards = writer.finish();
  report(options, source, shards, skipped);
}

}  // namespace

void add_pack_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<PackOptions>();
  CLI::App* const command = app.add_subcommand("pack", "write images and labels as shards");
  command
      ->add_option("SRC", options->source,
                   "Folder with one folder of images for each class, or a .csv or .jsonl list with "
                   "the columns path and label.")
      ->required();
  command
      ->add_option("OUT", options->shards.folder, "Folder for the shards, or s3://BUCKET/FOLDER.")
      ->required();
  add_shard_flags(*command, options->shards);
  command->add_option("--classes", options->classes_file,
                      "JSON file with the list of class names, in the order of their numbers. "
                      "Default: classes.json in OUT, or the sorted names of the classes found.");
  command
      ->add_option("--resize", options->resize,
                   "Shrink images whose shorter side has more pixels than this.")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65500}));
  command->add_option("--reencode", options->reencode,
                      "Write images as jpeg:QUALITY, png or raw, rotated as EXIF says. Default: "
                      "jpeg:90 with --resize; otherwise files are copied.");
  command->add_option("--seed", options->seed, "Random seed of the order of samples.")
      ->capture_default_str();
  command->add_flag("--in-file-order", options->in_file_order,
                    "Do not shuffle: keep the order of the list, or sort by path.");
  command->add_flag("--skip-bad", options->skip_bad,
                    "Decode every image, and leave out those that cannot be decoded.");
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_pack(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
