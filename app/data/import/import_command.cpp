#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/data/check_folder.h"
#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/pack_sources.h"
#include "app/data/files/shard_files.h"
#include "app/data/files/shard_writer.h"
#include "app/data/files/unique_keys.h"
#include "app/data/import/import_fields.h"
#include "app/data/import/import_keys.h"
#include "app/data/import/import_sources.h"
#include "app/data/import/import_tars.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/tar.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

struct ImportOptions {
  std::string kind;
  std::vector<std::string> sources;
  ShardOptions shards;
  FieldNames fields;
  bool prefix_keys = false;
  int threads = 0;
  bool as_json = false;
};

// Kinds of imports that a flag applies to, if not to all.
struct KindFlag {
  const char* name;
  std::vector<std::string> kinds;
};

const std::vector<KindFlag>& kind_flags() {
  static const std::vector<KindFlag> flags{
      {"--image-field", {"lmdb", "parquet", "tar", "tfrecord"}},
      {"--label-field", {"lmdb", "parquet", "tar", "tfrecord"}},
      {"--label-key", {"lmdb", "tar"}},
      {"--class-from-folder", {"tar"}},
      {"--multi-hot", {"lmdb", "tar"}},
      {"--first-class", {"idx", "lmdb", "parquet", "tar", "tfrecord"}},
      {"--prefix-keys", {"lmdb", "tar"}},
      {"--threads", {"folder"}},
  };
  return flags;
}

void refuse_flags_of_others(const CLI::App& command, const std::string& kind) {
  for (const KindFlag& flag : kind_flags()) {
    const bool is_used = std::find(flag.kinds.begin(), flag.kinds.end(), kind) != flag.kinds.end();
    if (is_used || command.count(flag.name) == 0) continue;
    throw core::UsageError(flag.name, fmt::format("does not apply to {}", kind),
                           fmt::format("it applies to: {}", fmt::join(flag.kinds, ", ")));
  }
}

// Prefix that --prefix-keys puts before the keys of a file: "train-0" for train-0.tar.gz.
std::string prefix_of(const std::string& source) {
  const std::string name = core::tar_name(source);
  const std::size_t tar = name.find(".tar");
  return tar == 0 ? name : name.substr(0, tar);
}

ImportedSet import_all(const storage::Stores& stores, const ImportOptions& options,
                       const UseSample& use) {
  if (options.kind == "idx") {
    if (options.sources.size() != 2) {
      throw core::UsageError("data import idx", "two files are needed",
                             "scaletrain data import idx IMAGES LABELS --out FOLDER");
    }
    import_idx(options.sources[0], options.sources[1], options.fields.first_class, use);
  }
  if (options.kind == "folder") {
    if (options.sources.size() != 1) {
      throw core::UsageError("data import folder", "one folder is needed",
                             "scaletrain data import folder FOLDER --out FOLDER");
    }
    return import_folder(options.sources[0], resolve_threads(options.threads), use);
  }
  if (options.kind == "parquet") return import_parquet(options.sources, options.fields, use);
  if (options.kind == "tfrecord") return import_tfrecord(options.sources, options.fields, use);
  ImportedSet set;
  std::optional<ImportedTars> tars;
  FieldNames fields = options.fields;
  if (options.kind == "tar") {
    set.classes = tars.emplace(stores, options.sources).classes(fields.first_class);
    if (fields.label_of_folder) set.classes = tars->folders(options.sources);
    fields.classes = set.classes;
  }
  UniqueKeys prefixes;
  for (const std::string& source : options.sources) {
    const std::string prefix = options.prefix_keys ? prefixes.take(prefix_of(source)) : "";
    const UseSample use_arranged = [&](ImportedSample sample) {
      use(arranged(std::move(sample), fields, prefix));
    };
    if (options.kind == "lmdb") import_lmdb(source, use_arranged);
    if (tars) tars->import(source, use_arranged, set);
  }
  return set;
}

// Checks samples from Parquet pages that have no checksum.
void check_imported(const storage::Stores& stores, const std::string& folder,
                    const std::vector<WrittenShard>& shards) {
  core::log(
      "pages of Parquet without a checksum, as most programs write them, are not verified: "
      "checking "
      "what was imported");
  std::vector<std::string> paths;
  paths.reserve(shards.size());
  for (const WrittenShard& shard : shards) paths.push_back(shard.path);
  CheckRules rules;
  rules.threads = resolve_threads(0);
  const FolderReport report = check_folder(stores, folder, paths, rules, /*repair=*/false);
  if (report.problems.empty()) return;
  const format::Quarantined& first = report.problems.front();
  throw core::DataError(
      fmt::format("{}: {}", file_in(core::shown_path(folder), first.shard),
                  format::shown_name(first.key)),
      fmt::format("{}; {} of the imported samples are wrong", first.problem,
                  report.problems.size()),
      "scaletrain data check lists all of them; with --repair training excludes them");
}

// Hint for a set in which no sample has the fields that training needs.
std::string shown_fields(const ImportedSample& sample) {
  constexpr const char* kFlags =
      "--image-field, --label-field and --label-key say which is the image, and where its class is";
  std::string fields;
  for (const ImportedField& field : sample.fields) {
    fields += " ." + format::shown_name(field.extension);
  }
  return fmt::format("\n  the first has{}: {}", fields, kFlags);
}

void run_import(const ImportOptions& options) {
  const storage::Stores stores;
  refuse_replaced_inputs(options.shards, options.sources);
  ShardWriter writer(stores, options.shards);
  observe::WorkProgress progress(STDERR_FILENO, "importing", 0);
  ImportKeys keys;
  std::int64_t samples = 0;
  std::string first_fields;
  const ImportedSet set = import_all(stores, options, [&](const ImportedSample& sample) {
    keys.insert(sample.key, sample.source);
    if (samples == 0) first_fields = shown_fields(sample);
    std::vector<WrittenField> fields;
    std::int64_t bytes = 0;
    for (const ImportedField& field : sample.fields) {
      fields.push_back({field.extension, field.bytes});
      bytes += static_cast<std::int64_t>(field.bytes.size());
    }
    writer.add(sample.key, fields);
    ++samples;
    progress.add(1, bytes);
  });
  if (samples == 0) {
    throw core::DataError(options.sources.front(), "holds no sample",
                          "name complete data sets of this kind");
  }
  writer.claim_classes(set.classes);
  const std::vector<WrittenShard>& written = writer.finish();
  const std::size_t shards = written.size();
  if (writer.incomplete() > 0) {
    const std::string fields = writer.incomplete() == samples ? first_fields : "";
    core::warn(
        "{} of {} {} not one image with a class number: other programs read {}, training here "
        "does not{}",
        writer.incomplete(), core::counted(samples, "sample"),
        writer.incomplete() == 1 ? "is" : "are", writer.incomplete() == 1 ? "it" : "them", fields);
  }
  if (set.lost_links > 0) {
    core::warn(
        "{} links are skipped, because their targets are not earlier files of the same tar; the "
        "first: {}",
        set.lost_links, set.first_lost_link);
  }
  if (options.as_json) {
    print_json({{"samples", samples},
                {"shards", shards},
                {"left_alone", set.left_alone},
                {"lost_links", set.lost_links}});
  } else {
    const std::string others = data::shown_files(set.left_alone);
    print(fmt::format(
        "imported {} into {} in {}{}\n", core::counted(samples, "sample"),
        core::counted(shards, "shard"), core::shown_path(options.shards.folder),
        others.empty() ? ""
                       : fmt::format("; these files are not images and are ignored: {}", others)));
  }
  if (options.kind == "parquet" && writer.incomplete() == 0) {
    check_imported(stores, options.shards.folder, written);
  }
}

}  // namespace

void add_import_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* const command =
      app.add_subcommand("import", "turn a data set of another format into shards");
  command
      ->add_option("KIND", options->kind,
                   "Format of the source: folder, idx, lmdb, parquet, tar or tfrecord. Files of "
                   "idx, tar and tfrecord may be compressed.")
      ->check(CLI::IsMember({"folder", "idx", "lmdb", "parquet", "tar", "tfrecord"}))
      ->required();
  command
      ->add_option("SRC", options->sources,
                   "Source files; tar also takes patterns, folders and URLs. For idx, give the "
                   "images first and then the labels.")
      ->required();
  command
      ->add_option("--out", options->shards.folder, "Folder for the shards, or s3://BUCKET/FOLDER.")
      ->required();
  add_shard_flags(*command, options->shards);
  command->add_option("--image-field", options->fields.image,
                      "the image's feature (default: image/encoded), Parquet column (image, img, "
                      "jpg or png), or what follows the key in its name, such as input.jpg");
  command->add_option("--label-field", options->fields.label,
                      "the label's feature (default: image/class/label), Parquet column (label or "
                      "cls), or what follows the key in its name (cls)");
  command->add_option("--label-key", options->fields.label_key,
                      "the label is this key of a JSON object in the label's field (json): a "
                      "number, a list, or a name of the classes.json beside the tars");
  command
      ->add_flag("--class-from-folder", options->fields.label_of_folder,
                 "Take the class from the last folder of the key: cat for cat/000.jpg.")
      ->excludes("--label-key");
  command->add_flag(
      "--multi-hot", options->fields.multi_hot,
      "Read label lists as multi-hot rows: [0, 1, 0, 0, 1] becomes the class numbers [1, 4].");
  command
      ->add_option("--first-class", options->fields.first_class,
                   "Lowest label of the source, which becomes class 0.")
      ->capture_default_str();
  command->add_flag("--prefix-keys", options->prefix_keys,
                    "Put the name of the file before each key, if files have equal keys.");
  add_threads_flag(*command, options->threads, "threads that read a folder's files");
  for (const KindFlag& flag : kind_flags()) {
    CLI::Option* const option = command->get_option(flag.name);
    option->description(
        fmt::format("{}: {}", fmt::join(flag.kinds, ", "), option->get_description()));
  }
  add_json_flag(*command, options->as_json);
  command->callback([options, command, &exit_status] {
    refuse_flags_of_others(*command, options->kind);
    if (options->kind == "tar") {
      options->sources = resolve_shards(storage::Stores(), options->sources);
    }
    run_import(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
