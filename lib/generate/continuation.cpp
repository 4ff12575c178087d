#include "lib/generate/continuation.h"

#include <ATen/ATen.h>

#include <span>

#include "lib/units/cache.h"

namespace scaletrain::generate {
namespace {

// Returns the logits of the token after `tokens`, [vocabulary] fp32 on the CPU.
at::Tensor scores_after(const Scores& scores, at::Device device,
                        const std::vector<std::int64_t>& tokens, units::Cache& cache) {
  const at::Tensor input = at::tensor(tokens, at::kLong).unsqueeze(0).to(device);
  const at::Tensor logits = scores(input, {.cache = &cache});
  cache.advance(input.size(1));
  return logits.select(1, -1).squeeze(0).to(at::kCPU, at::kFloat).contiguous();
}

}  // namespace

End continue_text(const Scores& scores, at::Device device, const std::vector<std::int64_t>& prompt,
                  const Limits& limits, const Sampler& sampler,
                  const std::function<void(std::int64_t token)>& take) {
  const at::NoGradGuard no_grad;
  units::Cache cache(limits.positions);
  std::vector<std::int64_t> next = prompt;
  for (std::int64_t number = 0; number < limits.tokens; ++number) {
    if (cache.length() == limits.positions) return End::kPositions;
    const at::Tensor last = scores_after(scores, device, next, cache);
    const std::span<const float> known(last.const_data_ptr<float>(),
                                       static_cast<std::size_t>(limits.vocabulary));
    const std::int64_t token = sampler.draw(known, static_cast<std::uint64_t>(number));
    if (token == limits.end_of_text) return End::kEndOfText;
    take(token);
    if (limits.documents_apart && next.back() == limits.end_of_text) {
      cache = units::Cache(limits.positions);
    }
    next = {token};
  }
  return End::kTokens;
}

}  // namespace scaletrain::generate
