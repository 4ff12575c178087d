#include "app/worker/generate_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/tokenizer/text_stream.h"
#include "app/worker/run_tokenizer.h"
#include "app/worker/stored_run.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/core/command_line.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text.h"
#include "lib/dist/device.h"
#include "lib/generate/continuation.h"
#include "lib/nn/model.h"
#include "lib/recipe/generation.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

struct Loaded {
  recipe::Recipe recipe;
  std::shared_ptr<nn::Model> model;
};

Loaded load_model_of(const fs::path& checkpoint, const Models& models) {
  Loaded loaded;
  loaded.recipe = recipe_of(checkpoint, models.catalog);
  if (!reads_tokens(loaded.recipe.model)) {
    throw core::UsageError(checkpoint.string(),
                           fmt::format("is of {}, which writes no text", loaded.recipe.model.name),
                           "name a checkpoint of a language model");
  }
  loaded.model = nn::make_model(loaded.recipe.model, loaded.recipe.data.image_size,
                                loaded.recipe.seed, models.factories);
  checkpoint::Tensors tensors;
  for (const auto& item : loaded.model->named_parameters()) {
    tensors[item.key()] = item.value().detach();
  }
  for (const auto& item : loaded.model->named_buffers()) tensors[item.key()] = item.value();
  checkpoint::load_model(checkpoint, tensors);
  return loaded;
}

// The prompt's tokens; of an empty prompt the end of a document, behind which another one begins.
std::vector<std::int64_t> tokens_of(const std::string& prompt, const RunTokenizer& run,
                                    std::int64_t positions) {
  if (prompt.empty()) return {run.end_of_text};
  if (!run.tokenizer->takes_any_bytes() && !core::is_utf8(prompt)) {
    throw core::UsageError("--prompt", "is not UTF-8", "the run's tokenizer takes UTF-8");
  }
  const std::vector<std::uint32_t> tokens = run.tokenizer->encode(prompt);
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count == 0) {
    throw core::UsageError("--prompt", "has nothing that the run's tokenizer knows",
                           "use another one, or none to begin a document");
  }
  if (count <= positions) return {tokens.begin(), tokens.end()};
  throw core::UsageError("--prompt",
                         fmt::format("has {} tokens, and the model {} positions", count, positions),
                         "use a shorter one");
}

// Prints tokens as they come, the characters that are whole.
class Printer {
 public:
  // `begins`: the text begins with the first token, and the tokenizer's own blank is not part of
  // it.
  Printer(const Tokenizer& tokenizer, bool begins)
      : tokenizer_(tokenizer), drops_blank_(begins && adds_blank(tokenizer)) {}

  void add(std::int64_t token) {
    std::string bytes = tokenizer_.bytes_of(static_cast<std::uint32_t>(token));
    if (std::exchange(drops_blank_, false) && bytes.starts_with(' ')) bytes.erase(0, 1);
    print(stream_.add(bytes));
  }
  void finish() { print(stream_.finish() + "\n"); }

 private:
  // A reader that has gone wants no more.
  static void print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    core::flush_output();
  }

  const Tokenizer& tokenizer_;
  bool drops_blank_;
  TextStream stream_;
};

void write_text(const recipe::Generation& asked, const Models& models) {
  const Loaded loaded = load_model_of(checkpoint_at(asked.checkpoint), models);
  const recipe::Recipe& recipe = loaded.recipe;
  nn::Model& model = *loaded.model;
  const RunTokenizer run = tokenizer_of(recipe, asked);
  const std::int64_t positions = recipe.model.integer("positions");
  const std::vector<std::int64_t> prompt = tokens_of(asked.prompt, run, positions);
  const at::Device device = dist::choose_device(asked.device, {});
  model.to(device);

  Printer printer(*run.tokenizer, asked.prompt.empty());
  const generate::End end =
      generate::continue_text(model, device, prompt,
                              {.tokens = asked.max_tokens,
                               .positions = positions,
                               .vocabulary = run.tokenizer->vocab_size(),
                               .end_of_text = run.end_of_text,
                               .documents_apart = recipe.data.document_attention},
                              generate::Sampler({.temperature = asked.temperature,
                                                 .top_k = asked.top_k,
                                                 .top_p = asked.top_p,
                                                 .seed = static_cast<std::uint64_t>(asked.seed)}),
                              [&printer](std::int64_t token) { printer.add(token); });
  printer.finish();
  if (end == generate::End::kPositions) {
    core::log("the text fills the model's {} positions", positions);
  }
}

}  // namespace

int run_generate(int argc, char** argv, const Models& models) {
  CLI::App app("Continue a text by a language model.", "scaletrain generate");
  recipe::Generation asked;
  recipe::add_generation_flags(app, asked);
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;
  write_text(asked, models);
  return 0;
}

}  // namespace scaletrain::app
