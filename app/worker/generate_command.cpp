#include "app/worker/generate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/tokenizer/text_stream.h"
#include "app/worker/run_tokenizer.h"
#include "app/worker/stored_run.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/command_line.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/generate/continuation.h"
#include "lib/recipe/generation.h"
#include "lib/train/build/evaluation_run.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostPromptBytes = 1 << 30;

struct Prompt {
  std::string where;  // in messages
  std::string text;
};

// Returns the lines of --prompts, or the single prompt.
std::vector<Prompt> prompts_of(const recipe::Generation& asked) {
  if (asked.prompts.empty()) return {{"--prompt", asked.prompt}};
  std::string whole = core::read_file(asked.prompts, kMostPromptBytes, core::ExitCode::kUsage);
  core::refuse_placeholder<core::UsageError>(core::shown_path(asked.prompts), whole);
  std::istringstream text(std::move(whole));
  std::vector<Prompt> prompts;
  for (std::string line; std::getline(text, line);) {
    prompts.push_back(
        {fmt::format("{} line {}", core::shown_path(asked.prompts), prompts.size() + 1), line});
  }
  if (!prompts.empty()) return prompts;
  throw core::UsageError("--prompts", fmt::format("{} is empty", core::shown_path(asked.prompts)),
                         "write a prompt in each line");
}

// Returns the tokens of a prompt; an empty prompt is an end of document, after which a new one
// begins.
std::vector<std::int64_t> tokens_of(const Prompt& prompt, const RunTokenizer& run,
                                    std::int64_t positions) {
  if (prompt.text.empty()) return {run.end_of_text};
  if (!run.tokenizer->takes_any_bytes() && !core::is_utf8(prompt.text)) {
    throw core::UsageError(prompt.where, "is not UTF-8", "the run's tokenizer takes UTF-8");
  }
  const std::vector<std::uint32_t> tokens = run.tokenizer->encode(prompt.text);
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count == 0) {
    throw core::UsageError(prompt.where, "has no token of the run's tokenizer",
                           "use another prompt, or none to start a new document");
  }
  if (count <= positions) return {tokens.begin(), tokens.end()};
  throw core::UsageError(
      prompt.where, fmt::format("has {} tokens, and the model has {} positions", count, positions),
      "use a shorter prompt");
}

// Hands on the text of tokens as they come, the characters that are whole.
class Writer {
 public:
  using Take = std::function<void(const std::string& text)>;

  // `begins`: the text begins with the first token, and the tokenizer's added blank is not part of
  // it.
  Writer(const Tokenizer& tokenizer, bool begins, Take take)
      : tokenizer_(tokenizer),
        drops_blank_(begins && adds_blank(tokenizer)),
        take_(std::move(take)) {}

  void add(std::int64_t token) {
    std::string bytes = tokenizer_.bytes_of(static_cast<std::uint32_t>(token));
    if (std::exchange(drops_blank_, false) && bytes.starts_with(' ')) bytes.erase(0, 1);
    take_(stream_.add(bytes));
  }
  void finish() { take_(stream_.finish()); }

 private:
  const Tokenizer& tokenizer_;
  bool drops_blank_;
  Take take_;
  TextStream stream_;
};

// Escapes the text: a model's tokens may be anything, and must not control the terminal.
std::string shown(const std::string& text) {
  static const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  return is_terminal ? core::printable_lines(text) : text;
}

// If the reader has closed the pipe, nothing more is written.
void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  core::flush_output();
}

const char* name_of(generate::End end) {
  switch (end) {
    case generate::End::kEndOfText:
      return "end_of_text";
    case generate::End::kTokens:
      return "max_tokens";
    case generate::End::kPositions:
      return "positions";
  }
  throw core::InternalError("generate", "a text has no end", "");
}

// Continues texts. Its references must outlive it.
class Continuer {
 public:
  Continuer(const recipe::Generation& asked, train::Run& run, const RunTokenizer& tokenizer)
      : asked_(asked), run_(run), tokenizer_(tokenizer) {}

  // Text number `number` of all.
  generate::End run(const Prompt& prompt, std::uint64_t number, const Writer::Take& take) {
    Writer writer(*tokenizer_.tokenizer, prompt.text.empty(), take);
    const std::int64_t positions = run_.recipe.model.integer("positions");
    const generate::End end = generate::continue_text(
        [this](const at::Tensor& input, const units::Context& context) {
          return run_.engine->predict({.input = input, .target = {}, .context = context});
        },
        run_.group->device(), tokens_of(prompt, tokenizer_, positions),
        {.tokens = asked_.max_tokens,
         .positions = positions,
         .vocabulary = tokenizer_.tokenizer->vocab_size(),
         .end_of_text = tokenizer_.end_of_text,
         .documents_apart = run_.recipe.data.document_attention},
        generate::Sampler({.temperature = asked_.temperature,
                           .top_k = asked_.top_k,
                           .top_p = asked_.top_p,
                           .seed = static_cast<std::uint64_t>(asked_.seed),
                           .text = number}),
        [&writer](std::int64_t token) { writer.add(token); });
    writer.finish();
    return end;
  }

 private:
  const recipe::Generation& asked_;
  train::Run& run_;
  const RunTokenizer& tokenizer_;
};

std::string json_line(Continuer& continuer, const Prompt& prompt, std::int64_t number) {
  std::string text;
  const generate::End end = continuer.run(prompt, static_cast<std::uint64_t>(number),
                                          [&text](const std::string& part) { text += part; });
  return core::json_text(nlohmann::ordered_json{
             {"prompt", prompt.text}, {"text", text}, {"ended_by", name_of(end)}}) +
         "\n";
}

// The ranks take turns with the texts, and rank 0 prints them in order.
void write_lines(const recipe::Generation& asked, const std::vector<Prompt>& prompts,
                 dist::Group& ranks, Continuer& continuer) {
  const std::int64_t count = std::ssize(prompts) * asked.samples;
  for (std::int64_t begin = 0; begin < count; begin += ranks.world_size()) {
    const std::int64_t own = begin + ranks.rank();
    std::string line;
    if (own < count) {
      line = json_line(continuer, prompts[static_cast<std::size_t>(own / asked.samples)], own);
    }
    for (int rank = 0; rank < ranks.world_size(); ++rank) {
      const std::string text = ranks.broadcast_text(line, rank, "texts");
      if (ranks.rank() == 0) print(text);
    }
  }
}

void write_texts(const recipe::Generation& asked, const Models& models) {
  const core::WorkerEnv env = core::read_worker_env();
  const fs::path checkpoint = format::checkpoint_at(asked.checkpoint);
  recipe::Recipe recipe = recipe_of(checkpoint, models.catalog, recipe::overrides_of(asked));
  if (!reads_tokens(recipe.model)) {
    throw core::UsageError(
        checkpoint.string(),
        fmt::format("is a checkpoint of {}, which does not generate text", recipe.model.name),
        "name a checkpoint of a language model");
  }
  const RunTokenizer tokenizer =
      tokenizer_of(recipe, checkpoint.parent_path().parent_path(), asked);
  const std::vector<Prompt> prompts = prompts_of(asked);
  const std::int64_t positions = recipe.model.integer("positions");
  for (const Prompt& prompt : prompts) tokens_of(prompt, tokenizer, positions);  // all can be used
  const std::unique_ptr<train::Run> run = train::build_evaluation(
      std::move(recipe), env, {checkpoint, asked.weights}, std::nullopt, models.factories);
  Continuer continuer(asked, *run, tokenizer);
  if (asked.json || std::ssize(prompts) * asked.samples > 1) {
    write_lines(asked, prompts, *run->group, continuer);
  } else if (env.rank == 0) {
    const generate::End end =
        continuer.run(prompts.front(), 0, [](const std::string& part) { print(shown(part)); });
    print("\n");
    if (end == generate::End::kPositions) {
      core::log("the text fills the model's {} positions", positions);
    }
  }
  run->mesh->end("the end");
}

}  // namespace

int run_generate(int argc, char** argv, const Models& models) {
  CLI::App app("Continue a text by a language model.", "scaletrain generate");
  recipe::Generation asked;
  recipe::add_generation_flags(app, asked);
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;
  write_texts(asked, models);
  return 0;
}

}  // namespace scaletrain::app
