#include "app/data/command_texts.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <vector>

#include "lib/core/text/help_text.h"

namespace scaletrain::app {
namespace {

constexpr const char* kWrite = "Write shards and tokens";
constexpr const char* kChange = "Check and change shards";
constexpr const char* kLook = "Look into shards";

const std::vector<core::CommandText>& texts() {
  static const std::vector<core::CommandText> result{
      {"", nullptr, "scaletrain data pack photos shards --resize 256"},
      {"pack", kWrite,
       "# Pack an image folder with one sub-folder for each class.\n"
       "scaletrain data pack photos shards --resize 256 --samples-per-shard 10000"},
      {"index", kChange, "scaletrain data index shards --hash"},
      {"check", kChange,
       "scaletrain data check shards\n"
       "# Let training leave damaged samples out.\n"
       "scaletrain data check shards --repair"},
      {"ls", kLook, "scaletrain data ls shards --json"},
      {"get", kLook, "scaletrain data get cat/000 shards > cat.jpg"},
      {"stats", kLook, "scaletrain data stats shards --html stats.html"},
      {"split", kChange, "scaletrain data split shards --out divided --val 0.1 --test 0.1"},
      {"dedup", kChange, "scaletrain data dedup shards --near 3 --drop-near --out unique"},
      {"import", kWrite,
       "scaletrain data import parquet train-*.parquet --out shards\n"
       "scaletrain data import idx images.idx3-ubyte labels.idx1-ubyte --out shards"},
      {"tokenize", kWrite,
       "scaletrain data tokenize corpus.jsonl --tokenizer tokenizer.json --out tokens"},
      {"card", kChange, "scaletrain data card shards --licence CC-BY-4.0"},
      {"synth", kWrite, "scaletrain data synth shapes --samples 1000 --classes 3 --size 64x64"},
      {"advise", kLook,
       "scaletrain data advise recipe.json --images-per-s 3000\n"
       "# Training's own rate is known from a run.\n"
       "scaletrain data advise runs/digits"},
      {"bench", kLook, "scaletrain data bench recipe.json --threads 4"},
      {"mirror", kLook,
       "scaletrain data mirror s3://bucket/runs/digits\n"
       "# Copy the newest complete checkpoint back into the run folder.\n"
       "scaletrain data mirror s3://bucket/runs/digits --to runs/digits"},
      {"fetch-run", kLook, "scaletrain data fetch-run s3://bucket/runs/digits --to copy"},
  };
  return result;
}

}  // namespace

void set_data_texts(CLI::App& app) { core::set_command_texts(app, texts()); }

}  // namespace scaletrain::app
