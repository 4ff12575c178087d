#include "lib/train/rules/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include "lib/core/text/hash.h"
#include "lib/format/tar/class_names.h"
#include "lib/recipe/agreed.h"

namespace scaletrain::train {
namespace {

using core::ExitCode;

constexpr const char* kSameCommand = "start every node with the same recipe and the same --set";
constexpr const char* kSameProgram = "install the same version on every node";
constexpr const char* kSameFiles = "give every node the same files and start again";

// Lists the shapes of full tensors, since local shards of ranks may differ.
std::string describe(const nn::Model& model, const units::Shards& parts) {
  std::string text;
  std::int64_t elements = 0;
  std::size_t tensors = 0;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    const auto part = parts.find(name);
    const std::vector<std::int64_t> shape =
        part == parts.end() ? tensor.sizes().vec() : part->second.shape;
    text += fmt::format("{} [{}] {}\n", name, fmt::join(shape, ","),
                        c10::toString(tensor.scalar_type()));
    elements += format::element_count(shape);
    ++tensors;
  };
  for (const auto& item : model.named_parameters()) add(item.key(), item.value());
  for (const auto& item : model.named_buffers()) add(item.key(), item.value());
  return fmt::format("{} tensors of {} elements (digest {:016x})", tensors, elements,
                     core::xxh3_64(text));
}

}  // namespace

std::vector<dist::Claim> claims_on_joining(const recipe::Recipe& recipe,
                                           const std::optional<std::filesystem::path>& resume) {
  std::vector<dist::Claim> claims;
  for (const auto& [key, value] : recipe::agreed_values(recipe)) {
    claims.push_back({.field = key + " of the recipe",
                      .value = value,
                      .code = ExitCode::kUsage,
                      .remedy = kSameCommand});
  }
  claims.push_back({.field = "LibTorch's version",
                    .value = TORCH_VERSION,
                    .code = ExitCode::kUsage,
                    .remedy = kSameProgram});
  claims.push_back({.field = "the checkpoint to resume from",
                    .value = resume ? resume->filename().string() : "none",
                    .code = ExitCode::kUsage,
                    .remedy = "start every node with the same --resume"});
  return claims;
}

void claim_set(std::vector<dist::Claim>& claims, const std::string& name, const SetFacts& set) {
  claims.push_back({.field = fmt::format("the number of samples of {}", name),
                    .value = std::to_string(set.samples),
                    .code = ExitCode::kData,
                    .remedy = kSameFiles});
  claims.push_back({.field = fmt::format("the digest of {} (names, labels and sizes)", name),
                    .value = set.digest,
                    .code = ExitCode::kData,
                    .remedy = kSameFiles});
}

void claim_classes(std::vector<dist::Claim>& claims, const std::vector<std::string>& names) {
  const std::uint64_t digest = core::xxh3_64(fmt::format("{}", fmt::join(names, "\n")));
  claims.push_back(
      {.field = "the class names of data.train",
       .value = fmt::format("{} (digest {:016x})", format::shown_classes(names), digest),
       .code = ExitCode::kData,
       .remedy = kSameFiles});
}

void claim_samples(std::vector<dist::Claim>& claims, const std::string& set_digest) {
  claims.push_back({.field = "the digest of 16 samples of data.train",
                    .value = set_digest,
                    .code = ExitCode::kData,
                    .remedy = kSameFiles});
}

void claim_model(std::vector<dist::Claim>& claims, std::int64_t total_steps, const nn::Model& model,
                 const units::Shards& parts) {
  claims.push_back({.field = "the number of steps",
                    .value = std::to_string(total_steps),
                    .code = ExitCode::kData,
                    .remedy = kSameFiles});
  claims.push_back({.field = "the model",
                    .value = describe(model, parts),
                    .code = ExitCode::kUsage,
                    .remedy = kSameProgram});
}

}  // namespace scaletrain::train
