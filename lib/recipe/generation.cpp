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

// CLI::Range takes what is not a number for one in range.
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
  constexpr std::int64_t kMostSeed = (std::int64_t{1} << 53) - 1;  // as a recipe's
  command
      .add_option("CHECKPOINT", generation.checkpoint,
                  "a checkpoint of a language model, a run's folder, its latest or its best")
      ->type_name("CHECKPOINT")
      ->required();
  add_weights_flag(command, generation.weights);
  CLI::Option* const prompt = command.add_option(
      "--prompt", generation.prompt, "the text that is continued; without one a document is begun");
  command.add_option("--prompts", generation.prompts, "a file with a prompt in each line")
      ->excludes(prompt);
  command.add_option("--samples", generation.samples, "texts of each prompt")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->capture_default_str();
  command.add_flag("--json", generation.json, "print a JSON object a line, as of several texts");
  command
      .add_option("--max-tokens", generation.max_tokens,
                  "at most so many; fewer where the document or the model's positions end")
      ->check(CLI::Range(std::int64_t{1}, kMostTokens))
      ->capture_default_str();
  command
      .add_option("--temperature", generation.temperature,
                  "0: always the likeliest token; less than 1: likely tokens more often")
      ->check(number_up_to(kMostTemperature))
      ->capture_default_str();
  command.add_option("--top-k", generation.top_k, "one of the so many likeliest tokens; 0: of all")
      ->check(CLI::Range(std::int64_t{0}, kMostTokens))
      ->capture_default_str();
  command
      .add_option("--top-p", generation.top_p,
                  "one of the fewest tokens that are as likely together")
      ->check(number_up_to(1))
      ->capture_default_str();
  command.add_option("--seed", generation.seed, "the same seed gives the same text")
      ->check(CLI::Range(std::int64_t{0}, kMostSeed))
      ->capture_default_str();
  command.add_option("--tokenizer", generation.tokenizer,
                     "as data tokenize takes it; otherwise that of the run's token files");
  command.add_option("--end-of-text", generation.end_of_text,
                     "the token that ends a document, for a tokenizer.json that does not say");
  command
      .add_option("--nproc", generation.nproc,
                  "ranks on this machine that share several texts; gpu: one a device")
      ->capture_default_str();
  command.add_option("--precision", generation.precision, "as a recipe's; otherwise the run's");
  command.add_option("--device", generation.device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command.add_option("--worker", generation.worker, "another worker program");
}

}  // namespace scaletrain::recipe
