// Our Huffman decoder (lib/data/image/huffman.h) in the place of libjpeg's own, by the method
// pointer that jpegint.h gives: libjpeg takes the same coefficients from it and does the rest.
// Blocks that libjpeg skips or does not transform are read only if later blocks cannot be read
// without them.
#pragma once

#include <memory>

struct jpeg_decompress_struct;  // NOLINT(readability-identifier-naming): libjpeg's

namespace scaletrain::data {

class JpegHuffman {
 public:
  JpegHuffman();
  ~JpegHuffman();

  // Takes over when jpeg_start_decompress() has returned, of a baseline picture in memory with one
  // scan; false for any other. Whatever is wrong with the data later ends in libjpeg's error_exit
  // with some message: libjpeg alone says what it is.
  bool take_over(jpeg_decompress_struct& info);

  // True if the data end with the picture; call after the last row. Also true if the end of that
  // row was not asked for.
  bool at_end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scaletrain::data
