// Replaces libjpeg's Huffman decoder by ours (lib/data/image/huffman.h), through the method pointer
// that jpegint.h declares. libjpeg gets the same coefficients and does everything else. Blocks that
// libjpeg skips or does not transform are read only if later blocks depend on them.
#pragma once

#include <memory>

struct jpeg_decompress_struct;  // NOLINT(readability-identifier-naming): libjpeg's

namespace scaletrain::data {

class JpegHuffman {
 public:
  JpegHuffman();
  ~JpegHuffman();

  // Call after jpeg_start_decompress(). Takes over the decoding of a baseline picture in memory
  // with one scan; returns false for other pictures. Errors in the data end in libjpeg's error_exit
  // with any message: decode again with libjpeg alone to get the right one.
  bool take_over(jpeg_decompress_struct& info);

  // True if the data end with the picture; call after the last row. Also true if the end of that
  // row was not read.
  bool at_end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scaletrain::data
