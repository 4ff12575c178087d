// Pictures of a run for its report and TensorBoard (/log/images), in RUN/media: the first training
// batch as the model sees it, and the most confident mistakes of each evaluation.
//
// Rank 0 takes them from its own samples and writes them; another rank does nothing. A task that
// reads no images has none. Mistakes need single-label classification and a rank with all units and
// all logits.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <string>
#include <vector>

#include "lib/core/job/worker_env.h"
#include "lib/data/image/image.h"
#include "lib/observe/run_media.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/train/loop/evaluate.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Images [count, channels, height, width], normalized, side by side in rows of `columns`; large
// ones are scaled down.
data::Image picture_grid(const at::Tensor& images, const recipe::Normalize& normalize,
                         std::int64_t columns);

class Pictures {
 public:
  Pictures(const Run& run, const core::WorkerEnv& env);

  // Call with every prepared training batch; the first one of a run is written.
  void batch(const task::Example& example);

  // Returns a watcher for evaluate() that starts a new collection of the most confident mistakes.
  // It does not wait for the device.
  Watcher watcher();
  // Writes what the watcher collected in the evaluation of `split`; `step`: that of the model.
  void write_mistakes(const std::string& split, std::int64_t step);

 private:
  // Most confident mistakes so far, on the device; undefined before the first batch.
  struct Mistakes {
    at::Tensor confidence, images, labels, predicted;
  };
  void write_batch(const task::Example& example);
  void add(const task::Example& example, const at::Tensor& output);
  void write(const Mistakes& mistakes, const std::string& split, std::int64_t step);
  // Warns and takes no more pictures.
  void give_up(const c10::Error& error);
  std::string class_name(std::int64_t number) const;
  std::vector<std::string> captions_of(const at::Tensor& targets) const;
  void write(observe::PictureRecord record, const at::Tensor& images);

  const Run& run_;
  bool writes_;
  bool writes_mistakes_;
  bool wants_batch_;
  Mistakes mistakes_;
  observe::RunMedia media_;
};

}  // namespace scaletrain::train
