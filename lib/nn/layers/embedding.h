// A table of vectors, one for each token or position.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lib/nn/layers/layer.h"

namespace scaletrain::nn {

// "weight" [rows, dim].
class Embedding : public Layer {
 public:
  Embedding(std::int64_t rows, std::int64_t dim);

  // ids [...] int64, 0..rows-1 -> [..., dim].
  at::Tensor forward(const at::Tensor& ids) const;

  // Returns the score of every row for each vector, with the same table: [..., dim] -> [..., rows].
  // This is the head of a language model with tied embeddings (Press and Wolf, Using the Output
  // Embedding to Improve Language Models, 2016).
  at::Tensor scores(const at::Tensor& input) const;

  // Returns `count` rows from row `begin` on, [count, dim].
  at::Tensor rows(std::int64_t begin, std::int64_t count) const;

  // Shards the table by rows: forward() gives zeros for rows of other ranks, and an all-reduce sums
  // them; scores() returns those of this rank's rows.
  void cut_by(units::LayerCut cut) override { cut_ = std::move(cut); }

  // Standard normal initialization.
  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator generator) const override;

 private:
  at::Tensor weight_;
  std::optional<units::LayerCut> cut_;
};

}  // namespace scaletrain::nn
