// Data sets of other formats, sample by sample.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/storage/stores.h"

namespace scaletrain::app {

struct ImportedField {
  std::string extension, bytes;
};

struct ImportedSample {
  std::string key;
  std::vector<ImportedField> fields;
};

using UseSample = std::function<void(const ImportedSample&)>;

// What the files tell beside the samples.
struct ImportedSet {
  std::vector<std::string> classes;                // their names
  std::map<std::string, std::int64_t> left_alone;  // files that are no images, by extension
};

// A folder for each class, in the files' order; images are taken as they are, read by `threads`
// threads.
ImportedSet import_folder(const std::string& path, int threads, const UseSample& use);

// LMDB with entries "KEY.EXTENSION" -> bytes, as the members of a shard are named.
void import_lmdb(const std::string& path, const UseSample& use);

// A tar with WebDataset's names, local or remote, plain or compressed (gzip, zstd, xz, bzip2)
// whatever it is called; it must end as a tar does.
void import_tar(const storage::Stores& stores, const std::string& path, const UseSample& use);

// IDX files of images and labels, as MNIST's, plain or compressed alike: images become PNG.
void import_idx(const std::string& images, const std::string& labels, const UseSample& use);

// Which feature or column is what; "" is the usual one of the format.
struct FieldNames {
  std::string image, label;
  std::int64_t first_class = 0;  // what is taken off each label
};

// tf.train.Example messages, "image/encoded" and "image/class/label", plain or compressed; the keys
// are the file's name, with a number where names repeat, and the record's number.
void import_tfrecord(const std::vector<std::string>& paths, const FieldNames& names,
                     const UseSample& use);

// Parquet, "image" (or "img", "jpg", "png") and "label" (or "cls"), both of which may be absent;
// the keys are the file's name, with a number where names repeat, and the row's number. Every other
// column is a field: NAME.txt for text, NAME.json for numbers, lists and structs, NAME.EXTENSION
// for bytes that are an image, else NAME.bin. Labels are class numbers, or names, which are
// numbered in bytewise order. Throws core::UsageError where Arrow is not there.
ImportedSet import_parquet(const std::vector<std::string>& paths, const FieldNames& names,
                           const UseSample& use);

// All throw core::DataError naming file and place: damage, a missing field, a label that is no
// class number.

}  // namespace scaletrain::app
