// Next-token prediction: softmax cross-entropy over the vocabulary. Metrics are its mean, its
// exponential (perplexity), and bits per byte of text if the sets know how many bytes their tokens
// stand for.
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"
#include "lib/data/loader/token_stream.h"
#include "lib/input/documents.h"
#include "lib/input/tokens.h"
#include "lib/nn/loss.h"
#include "lib/recipe/recipe.h"
#include "lib/task/task.h"

namespace scaletrain::task {
namespace {

class LanguageModelling : public Task {
 public:
  LanguageModelling(const recipe::TaskRow& row, const recipe::Recipe& recipe, at::Device device)
      : Task(row),
        data_(recipe.data),
        vocab_size_(recipe.model.integer("vocab_size")),
        seed_(recipe.seed),
        input_(device),
        loss_(nn::make_loss(recipe.loss, device)),
        plain_loss_(nn::make_plain_loss(recipe.loss, device)) {}

  OpenSet open(Split split, const Reader& reader, core::BufferPool& pool) override {
    const recipe::Source& source = source_of(data_, split);
    const auto set = std::make_shared<const data::TokenSet>(
        source.tokens, data::TokenOptions{.context = data_.context,
                                          .token_bytes = data_.token_bytes,
                                          .vocab_size = vocab_size_,
                                          .documents = data_.document_attention,
                                          .stores = reader.stores});
    if (split == Split::kTrain) masked_ = set->is_masked();
    keep_tokenizer(*set, source.tokens.front());
    if (data_.document_attention) keep_end_of_text(*set, source.tokens.front());
    if (const auto bytes = set->bytes_per_token()) bytes_per_token_[split] = *bytes;
    const data::TokenLoaderOptions options{.seed = seed_,
                                           .shuffle_files = data_.shuffle_shards,
                                           .threads = reader.threads,
                                           .search_threads = data_.search_threads,
                                           .prefetch = static_cast<int>(data_.prefetch)};
    OpenSet result;
    result.set = set;
    result.stream = split == Split::kTrain ? data::train_windows(set, options, reader.slice, pool)
                                           : data::eval_windows(set, options, reader.slice, pool);
    return result;
  }

  Example prepare(const data::Batch& batch, bool /*training*/) const override {
    input::TokenTensors tensors = input_.prepare(batch);
    if (cut_) return own_part(tensors);
    units::Context context;
    if (end_of_text_) context = input::apart(tensors.tokens, *end_of_text_);
    return {.input = std::move(tensors.tokens),
            .target = std::move(tensors.targets),
            .context = std::move(context)};
  }

  std::int64_t fixed_targets(std::int64_t samples) const override {
    return masked_ ? 0 : samples * data_.context;
  }

  at::Tensor loss_sum(const at::Tensor& output, const Example& example) const override {
    return loss_->sum(output.flatten(0, 1), example.target.flatten());
  }

  void cut_by(const units::ClassCut& cut) override {
    loss_->cut_by(cut);
    plain_loss_->cut_by(cut);
  }

  void share_sequences(const units::TokenCut& cut) override { cut_ = cut; }

  std::int64_t sum_count() const override { return kTargets + 1; }

  at::Tensor sums(const at::Tensor& output, const Example& example) const override {
    const at::Tensor loss = plain_loss_->sum(output.flatten(0, 1), example.target.flatten());
    return at::stack({loss.to(at::kDouble), example.target.ge(0).sum().to(at::kDouble)});
  }

  std::vector<recipe::Measured> finish(Split split, std::span<const double> sums,
                                       const at::Tensor& /*scores*/) const override {
    const double loss = sums[kLoss] / std::max(sums[kTargets], 1.0);
    std::vector<recipe::Measured> result{{row().measure("loss"), loss},
                                         {row().measure("perplexity"), std::exp(loss)}};
    const auto bytes = bytes_per_token_.find(split);
    if (bytes != bytes_per_token_.end()) {
      result.push_back({row().measure("bits_per_byte"), loss / std::log(2.0) / bytes->second});
    }
    return result;
  }

 private:
  // Returns this rank's part of sequences that several ranks share.
  Example own_part(const input::TokenTensors& whole) const {
    const at::Tensor places = cut_->places(whole.tokens.size(1));
    const auto own = [&](const at::Tensor& all) { return all.index_select(1, places); };
    input::Documents documents;
    if (end_of_text_) documents = input::documents_of(whole.tokens, *end_of_text_);
    const at::Tensor positions = end_of_text_ ? own(documents.positions) : places.unsqueeze(0);
    return {.input = own(whole.tokens),
            .target = own(whole.targets),
            .context = {.positions = positions,
                        .places = places,
                        .attend = cut_->attention(documents.numbers)}};
  }

  // A token number means another token in a set of another tokenizer.
  void keep_tokenizer(const data::TokenSet& set, const std::string& file) {
    if (tokenizer_ && set.tokenizer() && tokenizer_ != set.tokenizer()) {
      throw core::DataError(
          core::shown_path(file),
          fmt::format("is of the tokenizer {}, and another set of {}",
                      core::printable(*set.tokenizer()), core::printable(*tokenizer_)),
          "tokenize all sets with the same tokenizer");
    }
    if (!tokenizer_) tokenizer_ = set.tokenizer();
  }

  void keep_end_of_text(const data::TokenSet& set, const std::string& file) {
    if (end_of_text_ && end_of_text_ != set.end_of_text()) {
      throw core::DataError(
          core::shown_path(file),
          fmt::format("has documents that end with token {}, and another set with {}",
                      *set.end_of_text(), *end_of_text_),
          "tokenize all sets with the same tokenizer");
    }
    end_of_text_ = set.end_of_text();
  }

  recipe::Data data_;
  std::int64_t vocab_size_;
  std::uint64_t seed_;
  input::TokenInput input_;
  std::unique_ptr<nn::Loss> loss_, plain_loss_;
  std::optional<units::TokenCut> cut_;
  bool masked_ = false;
  std::optional<std::string> tokenizer_;     // tokenizer of the open sets
  std::optional<std::int64_t> end_of_text_;  // set if documents are masked from each other
  std::map<Split, double> bytes_per_token_;  // bytes per token of each open set, if known
};

}  // namespace

std::unique_ptr<Task> make_language_modelling(const recipe::TaskRow& row,
                                              const recipe::Recipe& recipe, at::Device device) {
  return std::make_unique<LanguageModelling>(row, recipe, device);
}

}  // namespace scaletrain::task
