// Data sets of other formats, sample by sample.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace scaletrain::app {

struct ImportedField {
  std::string extension, bytes;
};

struct ImportedSample {
  std::string key;
  std::vector<ImportedField> fields;
};

using UseSample = std::function<void(const ImportedSample&)>;

// LMDB with entries "KEY.EXTENSION" -> bytes, as the members of a shard are named.
void import_lmdb(const std::string& path, const UseSample& use);

// A tar, plain or compressed (gzip, zstd, xz, bzip2), with WebDataset's names.
void import_tar(const std::string& path, const UseSample& use);

// IDX files of images and labels, as MNIST's, plain or gzip: images become PNG.
void import_idx(const std::string& images, const std::string& labels, const UseSample& use);

struct TfrecordFields {
  std::string image = "image/encoded", label = "image/class/label";
  std::int64_t first_class = 0;  // what is taken off each label
};

// tf.train.Example messages; the keys are the file's name and the record's number.
void import_tfrecord(const std::string& path, const TfrecordFields& names, const UseSample& use);

// All throw core::DataError naming file and place: damage, a missing field, a label that is no
// class number.

}  // namespace scaletrain::app
