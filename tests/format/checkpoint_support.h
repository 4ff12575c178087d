// What the tests of checkpoints share: a folder that goes away, and the text of an error.
#pragma once

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/temporary_folder.h"

namespace scaletrain::test {

// state.json of a run that has done `step` steps.
inline std::string state_text(std::int64_t step) {
  format::TrainState state;
  state.step = step;
  return format::render_state(state);
}

inline constexpr const char* kWeightName = "fc.weight";

// A checkpoint of a model with two weights, trained by AdamW. Tests change parts of it.
struct Sensible {
  explicit Sensible(std::int64_t step)
      : updates(static_cast<float>(step)), noted_step(std::to_string(step)) {
    state.step = step;
  }

  format::TrainState state;
  std::array<float, 2> weights{0.5F, -1}, average{};
  float bias = -0.5;
  std::string averaged = kWeightName;  // the parameter of `average`
  float updates;
  std::int64_t batches = 4;
  std::string noted_step;  // beside the tensors of the model
  std::optional<std::string> optimizer_noted_step = std::nullopt;  // of the optimizer, if another
  bool has_mean = false;  // an ema, with these in place of two tensors of the model
  std::string mean_name = kWeightName;
  float mean_bias = 0.25;
  std::string classes = "[\"zero\", \"one\"]", recipe = "{\"name\": \"test\"}";

  format::FileEntries write(core::Disk& disk, const std::filesystem::path& folder) const {
    const auto text = [&](const char* name, const std::string& bytes) {
      return std::pair(name, format::write_hashed(disk, folder / name, bytes));
    };
    const auto tensors = [&](const char* name, const std::string& noted,
                             std::vector<format::TensorBytes> described) {
      return std::pair(name, format::write_safetensors(disk, folder / name, std::move(described),
                                                       {{"step", noted}}));
    };
    format::FileEntries entries{
        text("state.json", format::render_state(state)), text("classes.json", classes),
        text("recipe.json", recipe),
        tensors("model.safetensors", noted_step,
                {{"fc.bias", "F32", {1}, as_bytes(bias)},
                 {kWeightName, "F32", {2}, std::as_bytes(std::span(weights))},
                 {"norm.num_batches_tracked", "I64", {}, as_bytes(batches)}}),
        tensors("optimizer.safetensors", optimizer_noted_step.value_or(noted_step),
                {{"step", "F32", {}, as_bytes(updates)},
                 {"exp_avg/" + averaged, "F32", {2}, std::as_bytes(std::span(average))}})};
    if (has_mean) {
      entries.insert(tensors("ema.safetensors", noted_step,
                             {{"fc.bias", "F32", {1}, as_bytes(mean_bias)},
                              {mean_name, "F32", {2}, std::as_bytes(std::span(weights))},
                              {"norm.num_batches_tracked", "I64", {}, as_bytes(batches)}}));
    }
    return entries;
  }

  template <class Value>
  static std::span<const std::byte> as_bytes(const Value& value) {
    return std::as_bytes(std::span(&value, 1));
  }
};

inline std::filesystem::path publish(const std::filesystem::path& run, const Sensible& contents,
                                     std::int64_t step) {
  core::Disk& disk = core::system_disk();
  return format::publish_checkpoint(
      disk, run / "checkpoints", {.program = "test", .step = step}, 1000,
      [&](const std::filesystem::path& folder) { return contents.write(disk, folder); });
}

inline std::filesystem::path publish_sensible(const std::filesystem::path& run, std::int64_t step) {
  return publish(run, Sensible(step), step);
}

// what() of the Error that `body` throws; any other exception passes on.
template <class Error, class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// What `body` warns of, a line each with "; " behind it.
template <class Body>
std::string warnings_of(const Body& body) {
  std::string said;
  core::set_warning_listener([&](const std::string& line) { said += line + "; "; });
  body();
  core::set_warning_listener({});
  return said;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace scaletrain::test
