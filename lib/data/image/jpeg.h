// JPEG decoding with libjpeg-turbo, of whole pictures or parts, with our own Huffman decoder
// (jpeg_huffman.h).
//
// A warning of the library is an error unless it is tolerated. A decoded part equals the same part
// of the whole picture but costs less: rows below it are not read, columns beside it are not
// transformed, data that restart markers separate from it are skipped, and the inverse transform
// can shrink a picture by 2, 4 or 8. After a part, only the file's end marker is checked: a
// truncated file is an error, but other damage outside the part may go unnoticed.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/data/image/image.h"
#include "lib/data/image/view.h"

namespace scaletrain::data {

// Decoder with its working memory, for one thread. All functions throw std::invalid_argument
// describing the problem of the file; the next file can be opened afterwards.
class Jpeg {
 public:
  Jpeg();
  ~Jpeg();

  // If `tolerates`, decodes despite libjpeg's warnings. warning() returns the first one since then,
  // "" for none.
  void tolerate(bool tolerates);
  const char* warning() const;

  // Reads the header of `file`, which must outlive the decoding.
  void open(std::string_view file);
  std::int64_t width() const;
  std::int64_t height() const;
  int orientation() const;  // EXIF orientation, 1..8; 1 if the file has none

  // Call one of the two once after open(). decode() decodes the whole picture. decode_part()
  // decodes at least `part` of the picture shrunk by `shrink` (1, 2, 4 or 8) and returns the
  // position of the first decoded pixel.
  void decode(Image& image);
  struct Corner {
    std::int64_t left = 0, top = 0;
  };
  Corner decode_part(const Box& part, std::int64_t shrink, Image& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scaletrain::data
