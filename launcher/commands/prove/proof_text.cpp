#include "launcher/commands/prove/proof_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

using ProofJson = nlohmann::ordered_json;

constexpr std::size_t kShownDigest = 12;

std::string digests_text(const ProofResult& result) {
  const std::string first = result.first_digest.substr(0, kShownDigest);
  const std::string second = result.second_digest.substr(0, kShownDigest);
  return first == second ? first : fmt::format("{} and {}", first, second);
}

std::string kills_text(const Proof& proof) {
  std::string text;
  for (const PlannedKill& kill : proof.second.kills) {
    text += fmt::format("{}rank {} at step {}", text.empty() ? ", killed: " : ", ", kill.rank,
                        kill.step);
  }
  return text;
}

std::string parting_text(const Parting& parting, const std::string& tensor) {
  std::string text = fmt::format("not equal: step {}, {} {} and {}", parting.step, parting.field,
                                 parting.first, parting.second);
  if (!tensor.empty()) text += ", tensor " + core::printable(tensor);
  return text;
}

std::string verdict_text(const Proof& proof, const ProofResult& result) {
  if (!proof.not_applicable.empty()) {
    return "not applicable: " + core::printable(proof.not_applicable);
  }
  if (!result.failure.empty()) return "failed: " + result.failure;
  switch (result.verdict.equality) {
    case RunEquality::kEqual:
      return fmt::format("equal, digest {}{}", digests_text(result), kills_text(proof));
    case RunEquality::kWithin:
      return fmt::format("within {:g} (relative difference {:.2g}), digests {}", proof.tolerance,
                         result.verdict.relative, digests_text(result));
    case RunEquality::kDifferent:
      break;
  }
  return parting_text(*result.verdict.parting, result.tensor) + kills_text(proof);
}

const char* verdict_name(const Proof& proof, const ProofResult& result) {
  if (!proof.not_applicable.empty()) return "not_applicable";
  if (!result.failure.empty()) return "failed";
  if (result.verdict.equality == RunEquality::kEqual) return "equal";
  return result.verdict.equality == RunEquality::kWithin ? "within" : "not_equal";
}

ProofJson trial_json(const Trial& trial, const std::string& digest) {
  ProofJson json{{"ranks", trial.ranks}, {"precision", trial.recipe.precision.name}};
  if (!digest.empty()) json["digest"] = digest;
  for (const PlannedKill& kill : trial.kills) {
    json["kills"].push_back({{"step", kill.step}, {"rank", kill.rank}});
  }
  return json;
}

}  // namespace

std::string proof_row(const Proof& proof, const ProofResult& result, std::size_t name_width) {
  return fmt::format("{:<{}}  {}\n", proof.name, name_width, verdict_text(proof, result));
}

ProofJson proof_json(const Proof& proof, const ProofResult& result) {
  ProofJson json{{"group", proof.group},
                 {"name", proof.name},
                 {"verdict", verdict_name(proof, result)},
                 {"tolerance", proof.tolerance},
                 {"first", trial_json(proof.first, result.first_digest)},
                 {"second", trial_json(proof.second, result.second_digest)}};
  if (!proof.not_applicable.empty()) {
    json["reason"] = proof.not_applicable;
    return json;
  }
  if (!result.failure.empty()) {
    json["reason"] = result.failure;
    return json;
  }
  json["relative"] = result.verdict.relative;
  if (const std::optional<Parting>& parting = result.verdict.parting) {
    json["parting"] = {{"step", parting->step},
                       {"field", parting->field},
                       {"first", parting->first},
                       {"second", parting->second}};
    if (!result.tensor.empty()) json["parting"]["tensor"] = result.tensor;
  }
  return json;
}

}  // namespace scaletrain::launcher
