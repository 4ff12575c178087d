// The commands of `scaletrain data`, each in the file of its name.
//
// Each adds its command to `app`, to run in its callback: it prints to standard output and sets
// `exit_status`, which is 0 before, or throws core::Error.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::app {

// `advise RECIPE|RUN|SHARDS`: the stage that limits the data loader, and changes that would help.
void add_advise_command(CLI::App& app, int& exit_status);
// `bench RECIPE|SHARD...`: images per second of each stage, and the bottleneck.
void add_bench_command(CLI::App& app, int& exit_status);
// `card PATH...`: provenance and contents of a set of shards.
void add_card_command(CLI::App& app, int& exit_status);
// `check PATH...`: finds all errors in shards, not only the first.
void add_check_command(CLI::App& app, int& exit_status);
// `dedup PATH...`: finds exact and near duplicates of images.
void add_dedup_command(CLI::App& app, int& exit_status);
// `fetch-run PLACE --to FOLDER`: the files of a run in an object store, for reports.
void add_fetch_run_command(CLI::App& app, int& exit_status);
// `get KEY PATH...`: one sample out of shards.
void add_get_command(CLI::App& app, int& exit_status);
// `import KIND SRC... OUT`: data sets of other formats to shards.
void add_import_command(CLI::App& app, int& exit_status);
// `index PATH... [--hash]`: writes the indexes of shards.
void add_index_command(CLI::App& app, int& exit_status);
// `ls PATH...`: the samples of shards.
void add_ls_command(CLI::App& app, int& exit_status);
// `mirror PLACE`: remote checkpoint copies of a run.
void add_mirror_command(CLI::App& app, int& exit_status);
// `pack SRC OUT`: a folder of class folders, or a list, to shards.
void add_pack_command(CLI::App& app, int& exit_status);
// `split PATH... --out FOLDER`: shards to training, validation and test shards.
void add_split_command(CLI::App& app, int& exit_status);
// `stats PATH...`: contents of shards: classes, sizes, formats, pixels.
void add_stats_command(CLI::App& app, int& exit_status);
// `synth OUT`: labelled pictures of shapes, for trials without data.
void add_synth_command(CLI::App& app, int& exit_status);
// `tokenize TEXT... --out FOLDER`: text to files of tokens.
void add_tokenize_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
