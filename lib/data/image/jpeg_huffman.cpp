#include "lib/data/image/jpeg_huffman.h"

#include <cstdio>  // jpeglib.h wants it

// Each needs the one before.
// clang-format off
#include <jpeglib.h>
#include <jpegint.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <iterator>

#include "lib/data/image/huffman.h"

namespace scaletrain::data {

struct JpegHuffman::State {
  // libjpeg holds a pointer to `methods`; its callbacks find the state through it.
  struct Methods {
    jpeg_entropy_decoder methods = {};
    State* state = nullptr;
  };
  Methods methods;
  HuffmanScan scan;
  std::array<HuffmanTable, NUM_HUFF_TBLS> dc_tables, ac_tables;
  struct Block {
    const HuffmanTable *dc_table = nullptr, *ac_table = nullptr;
    std::int32_t* dc = nullptr;  // DC predictor of the block's component
  };
  std::array<Block, D_MAX_BLOCKS_IN_MCU> blocks;  // blocks of one MCU
  std::size_t block_count = 0;
  std::array<std::int32_t, MAX_COMPS_IN_SCAN> dc{};
  std::array<std::int16_t, HuffmanScan::kCoefficients> unwanted{};  // receives a skipped block

  // MCUs are numbered within the picture.
  std::int64_t count = 0, interval = 0;  // all; those between two restart markers
  std::int64_t asked = 0;                // MCU that libjpeg requests next
  JDIMENSION asked_column = 0;
  std::int64_t next = 0, piece_end = 0;  // MCU at which `scan` is; first MCU after its piece

  static boolean decode_mcu(j_decompress_ptr info, JBLOCKROW* coefficients);
  bool read_mcu(JBLOCKROW* coefficients);
  bool move_to(std::int64_t mcu);
};

namespace {

HuffmanCodes codes_of(const JHUFF_TBL& table) {
  HuffmanCodes codes;
  std::copy(std::begin(table.bits), std::end(table.bits), codes.counts.begin());
  std::copy(std::begin(table.huffval), std::end(table.huffval), codes.symbols.begin());
  return codes;
}

bool is_plain(const jpeg_decompress_struct& info) {
  return info.progressive_mode == 0 && info.arith_code == 0 && info.data_precision == 8 &&
         info.comps_in_scan == info.num_components &&
         info.blocks_in_MCU <= HuffmanScan::kMostBlocks;
}

}  // namespace

// Called by C code that may be left by longjmp, so it has no objects with destructors.
boolean JpegHuffman::State::decode_mcu(j_decompress_ptr info, JBLOCKROW* coefficients) {
  State* const self = reinterpret_cast<Methods*>(info->entropy)->state;
  const std::int64_t mcu = self->asked++;
  const JDIMENSION column = self->asked_column;
  self->asked_column = column + 1 < info->MCUs_per_row ? column + 1 : 0;
  const bool is_wanted = coefficients != nullptr && column >= info->master->first_iMCU_col &&
                         column <= info->master->last_iMCU_col;
  if (is_wanted && !(self->move_to(mcu) && self->read_mcu(coefficients))) {
    ERREXIT(info, JERR_BAD_DCT_COEF);
  }
  return TRUE;
}

// Reads the blocks before `mcu` in its piece. False if they, or the end of the previous piece, are
// damaged.
bool JpegHuffman::State::move_to(std::int64_t mcu) {
  if (mcu >= piece_end) {
    if (next == piece_end && scan.left() != 0) return false;
    const std::int64_t piece = mcu / interval;
    scan.seek(piece);
    dc.fill(0);
    next = piece * interval;
    piece_end = next + interval;
  }
  while (next < mcu) {
    if (!read_mcu(nullptr)) return false;
  }
  return true;
}

bool JpegHuffman::State::read_mcu(JBLOCKROW* coefficients) {
  for (std::size_t i = 0; i < block_count; ++i) {
    JCOEF* const to = coefficients == nullptr ? unwanted.data() : &(*coefficients[i])[0];
    if (!scan.read_block(*blocks[i].dc_table, *blocks[i].ac_table, *blocks[i].dc, to)) return false;
  }
  ++next;
  return !scan.overrun();
}

JpegHuffman::JpegHuffman() : state_(std::make_unique<State>()) {}
JpegHuffman::~JpegHuffman() = default;

bool JpegHuffman::take_over(jpeg_decompress_struct& info) {
  State& state = *state_;
  if (!is_plain(info)) return false;
  jpeg_source_mgr& source = *info.src;
  state.count = std::int64_t{info.MCUs_per_row} * info.MCU_rows_in_scan;
  state.interval = info.restart_interval > 0 ? std::int64_t{info.restart_interval} : state.count;
  const std::int64_t bytes = state.scan.open({source.next_input_byte, source.bytes_in_buffer},
                                             (state.count + state.interval - 1) / state.interval);
  if (bytes < 0) return false;
  source.next_input_byte += bytes;
  source.bytes_in_buffer -= static_cast<std::size_t>(bytes);
  state.asked = state.next = 0;
  state.asked_column = 0;
  state.piece_end = state.interval;
  state.dc.fill(0);
  state.block_count = static_cast<std::size_t>(info.blocks_in_MCU);
  for (int i = 0; i < info.blocks_in_MCU; ++i) {
    const int component = info.MCU_membership[i];
    const jpeg_component_info& its = *info.cur_comp_info[component];
    HuffmanTable& dc_table = state.dc_tables.at(static_cast<std::size_t>(its.dc_tbl_no));
    HuffmanTable& ac_table = state.ac_tables.at(static_cast<std::size_t>(its.ac_tbl_no));
    dc_table.prepare(codes_of(*info.dc_huff_tbl_ptrs[its.dc_tbl_no]), HuffmanTable::Kind::kDc);
    ac_table.prepare(codes_of(*info.ac_huff_tbl_ptrs[its.ac_tbl_no]), HuffmanTable::Kind::kAc);
    state.blocks[static_cast<std::size_t>(i)] = {&dc_table, &ac_table,
                                                 &state.dc[static_cast<std::size_t>(component)]};
  }
  state.methods = {*info.entropy, &state};
  state.methods.methods.decode_mcu = State::decode_mcu;
  info.entropy = &state.methods.methods;
  return true;
}

bool JpegHuffman::at_end() const {
  return state_->next < state_->count || state_->scan.left() == 0;
}

}  // namespace scaletrain::data
