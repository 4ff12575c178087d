#include "app/data/import_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/data/import_sources.h"
#include "app/data/options.h"
#include "app/data/output.h"
#include "app/data/pack_sources.h"
#include "app/data/set_classes.h"
#include "app/data/shard_writer.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/key_set.h"
#include "lib/format/tar.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

struct ImportOptions {
  std::string kind;
  std::vector<std::string> sources;
  ShardOptions shards;
  FieldNames fields;
  int threads = 0;
  bool as_json = false;
};

ImportedSet import_all(const storage::Stores& stores, const ImportOptions& options,
                       const UseSample& use) {
  if (options.kind == "idx") {
    if (options.sources.size() != 2) {
      throw core::UsageError("data import idx", "two files are needed",
                             "scaletrain data import idx IMAGES LABELS --out FOLDER");
    }
    import_idx(options.sources[0], options.sources[1], use);
  }
  if (options.kind == "folder") {
    if (options.sources.size() != 1) {
      throw core::UsageError("data import folder", "one folder is needed",
                             "scaletrain data import folder FOLDER --out FOLDER");
    }
    return import_folder(options.sources[0], resolve_threads(options.threads), use);
  }
  if (options.kind == "parquet") return import_parquet(options.sources, options.fields, use);
  if (options.kind == "tfrecord") import_tfrecord(options.sources, options.fields, use);
  for (const std::string& source : options.sources) {
    if (options.kind == "lmdb") import_lmdb(source, use);
    if (options.kind == "tar") import_tar(stores, source, use);
  }
  return {};
}

void run_import(const ImportOptions& options) {
  const storage::Stores stores;
  refuse_replaced_inputs(options.shards, options.sources);
  ShardWriter writer(stores, options.shards);
  observe::WorkProgress progress(STDERR_FILENO, "importing", 0);
  format::KeySet keys;
  std::int64_t samples = 0;
  const ImportedSet set = import_all(stores, options, [&](const ImportedSample& sample) {
    if (!keys.insert(sample.key)) {
      throw core::DataError(format::shown_name(sample.key), "the key is used again",
                            "the fields of a key must stand together, and keys must differ");
    }
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
                          "name whole data sets of the kind that is given");
  }
  check_classes(stores, options.shards.folder, set.classes);
  const std::size_t shards = writer.finish().size();
  keep_classes(stores, options.shards.folder, set.classes);
  if (writer.incomplete() > 0) {
    core::warn(
        "{} of {} samples are not one image with a class number: other programs read them, "
        "training here does not",
        writer.incomplete(), samples);
  }
  if (options.as_json) {
    print_json({{"samples", samples}, {"shards", shards}, {"left_alone", set.left_alone}});
  } else {
    const std::string others = shown_files(set.left_alone);
    print(fmt::format("imported {} samples into {} shards in {}{}\n", samples, shards,
                      options.shards.folder,
                      others.empty() ? "" : fmt::format("; no images, left alone: {}", others)));
  }
}

}  // namespace

void add_import_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* const command =
      app.add_subcommand("import", "turn a data set of another format into shards");
  command
      ->add_option("KIND", options->kind,
                   "folder, idx, lmdb, parquet, tar or tfrecord; idx, tar and tfrecord also "
                   "compressed")
      ->check(CLI::IsMember({"folder", "idx", "lmdb", "parquet", "tar", "tfrecord"}))
      ->required();
  command
      ->add_option(
          "SRC", options->sources,
          "files, for tar also patterns, folders and URLs; for idx the images, then the labels")
      ->required();
  command
      ->add_option("--out", options->shards.folder,
                   "the folder of the shards, or s3://BUCKET/FOLDER")
      ->required();
  add_shard_flags(*command, options->shards);
  command->add_option("--image-field", options->fields.image,
                      "the image's feature (default: image/encoded) or Parquet column (image, img, "
                      "jpg or png)");
  command->add_option(
      "--label-field", options->fields.label,
      "the label's feature (default: image/class/label) or Parquet column (label or "
      "cls)");
  command
      ->add_option("--first-class", options->fields.first_class,
                   "tfrecord, parquet: the lowest label, which becomes 0")
      ->capture_default_str();
  add_threads_flag(*command, options->threads, "threads that read a folder's files");
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    if (options->kind == "tar") {
      options->sources = resolve_shards(storage::Stores(), options->sources);
    }
    run_import(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
