#include "lib/parallel/flat_memory.h"

namespace scaletrain::parallel {

void give_memory_back(const at::Tensor& whole) {
  c10::StorageImpl& storage = *whole.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, whole.device()));
  storage.set_nbytes(0);
}

void take_memory(const at::Tensor& whole) {
  c10::StorageImpl& storage = *whole.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(storage.allocator()->allocate(whole.nbytes()));
  storage.set_nbytes(whole.nbytes());
}

}  // namespace scaletrain::parallel
