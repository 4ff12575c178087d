#include "lib/recipe/generation.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <string>
#include <system_error>

#include "lib/recipe/weights_flag.h"

namespace scaletrain::recipe {
namespace {

// CLI::Range accepts text that is not a number.
CLI::Validator number_up_to(double most) {
  return {[most](const std::string& text) {
            double value = -1;
            const char* const end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, value);
            return stop == end && error == std::errc() && value >= 0 && value <= most
                       ? std::string()
                       : fmt::format("Value {} not in range 0 to {}", text, most);
          },
          fmt::format("FLOAT in [0 - {}]", most)};
}

}  // namespace

std::vector<std::string> overrides_of(const Generation& asked) {
  std::vector<std::string> overrides;
  if (asked.device != "auto") overrides.push_back("device=" + asked.device);
  if (!asked.precision.empty()) overrides.push_back("precision=" + asked.precision);
  return overrides;
}

void add_generation_flags(CLI::App& command, Generation& generation) {
  constexpr double kMostTemperature = 100;
  constexpr std::int64_t kMostTokens = 1'000'000;
  constexpr std::int64_t kMostSeed = (std::int64_t{1} << 53) - 1;  // as in a recipe
  command
      .add_option("CHECKPOINT", generation.checkpoint,
                  "Checkpoint of a language model, run folder, or its `latest` or `best`.")
      ->type_name("CHECKPOINT")
      ->required();
  add_weights_flag(command, generation.weights);
  CLI::Option* const prompt = command.add_option(
      "--prompt", generation.prompt, "Text to continue. Without a prompt a new document begins.");
  command.add_option("--prompts", generation.prompts, "File with one prompt on each line.")
      ->excludes(prompt);
  command
      .add_option("--samples", generation.samples, "Number of texts to generate for each prompt.")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->capture_default_str();
  command.add_flag("--json", generation.json,
                   "Print one JSON object per text, one per line. Always on for several texts.");
  command
      .add_option("--max-tokens", generation.max_tokens,
                  "Maximum number of new tokens. Generation ends earlier at the end of the "
                  "document or of the model's positions.")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->capture_default_str();
  command
      .add_option("--temperature", generation.temperature,
                  "Sampling temperature. 0 always takes the most likely token (greedy decoding); "
                  "values below 1 favor likely tokens.")
      ->check(number_up_to(kMostTemperature))
      ->capture_default_str();
  command
      .add_option("--top-k", generation.top_k,
                  "Top-k sampling: draw from the K most likely tokens; 0 draws from all tokens.")
      ->check(CLI::Range(std::int64_t{0}, kMostTokens))
      ->capture_default_str();
  command
      .add_option("--top-p", generation.top_p,
                  "Top-p (nucleus) sampling: draw from the smallest set of tokens with at least "
                  "this total probability.")
      ->check(number_up_to(1))
      ->capture_default_str();
  command.add_option("--seed", generation.seed, "Random seed. The same seed gives the same text.")
      ->check(CLI::Range(std::int64_t{0}, kMostSeed))
      ->capture_default_str();
  command.add_option("--tokenizer", generation.tokenizer,
                     "Tokenizer, as for `scaletrain data tokenize`. Default: the tokenizer of the "
                     "run's token files.");
  command.add_option("--end-of-text", generation.end_of_text,
                     "Token that ends a document, if tokenizer.json does not name one.");
  command
      .add_option("--nproc", generation.nproc,
                  "Number of ranks on this machine, which share the prompts; `gpu` starts one for "
                  "each device.")
      ->capture_default_str();
  command.add_option("--precision", generation.precision,
                     "Compute data type, as `precision` in a recipe. Default: that of the run.");
  command
      .add_option("--device", generation.device,
                  "Device to compute on; `auto` takes a GPU where there is one.")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command.add_option("--worker", generation.worker,
                     "Path of a worker program of your own, with its models.");
}

}  // namespace scaletrain::recipe
