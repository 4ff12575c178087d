// JPEG through libjpeg-turbo, whole or in part, with our Huffman decoder (jpeg_huffman.h).
//
// A warning of the library is a failure, unless it is tolerated. A part is what the same part of
// the whole would be, but costs less: rows below it are not read, columns beside it are not
// transformed, what restart markers set apart from it is passed over, and a picture may be shrunk
// by 2, 4 or 8 on the way out of the frequency domain. After a part only the file's end marker is
// looked for: a truncated file fails, other damage outside the part may go unseen.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/data/image/image.h"
#include "lib/data/image/view.h"

namespace scaletrain::data {

// With its working memory; for one thread. Everything throws std::invalid_argument saying what is
// wrong with the file, and is ready for another file then.
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

  // Call one of them once after open(): decode() gives the whole picture, decode_part() at least
  // `part` of the picture shrunk by `shrink` (1, 2, 4 or 8) and returns the place of its first
  // pixel.
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
