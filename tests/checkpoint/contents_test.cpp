#include "lib/checkpoint/contents.h"

#include <doctest/doctest.h>

namespace scaletrain::checkpoint {

TEST_CASE("files are found by name and named after the weights that they belong to") {
  Contents contents;
  contents.file("optimizer.safetensors", TensorFile::Kind::kOptimizer).bytes_of_all = 7;
  CHECK(contents.file("optimizer.safetensors").bytes_of_all == 7);
  CHECK((contents.file("optimizer.safetensors").kind == TensorFile::Kind::kOptimizer));
  CHECK(contents.files.size() == 1);
  CHECK(buffers_file("model.safetensors") == "buffers.safetensors");
  CHECK(buffers_file("ema-0.999.safetensors") == "ema-0.999_buffers.safetensors");
  CHECK(part_name("model.safetensors", 0, 12) == "model-00001-of-00012.safetensors");
}

}  // namespace scaletrain::checkpoint
