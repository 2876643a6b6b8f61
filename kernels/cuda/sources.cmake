# What libtandem_cuda.so is made of, from the repository's root. A list of its own because the tests
# compile the same sources for their emulator.
include(${CMAKE_CURRENT_LIST_DIR}/../operators.cmake)
list(TRANSFORM TANDEM_OPERATORS REPLACE "(.+)" "kernels/cuda/\\1.cu" OUTPUT_VARIABLE TANDEM_CUDA_KERNELS)
list(APPEND TANDEM_CUDA_KERNELS kernels/cuda/attention_bf16.cu kernels/cuda/attention_bf16_backward.cu)
set(TANDEM_CUDA_HOST
  kernels/cuda/library_gemm.cc kernels/cuda/module.cc kernels/cuda/table.cc runtime/base/check.cc
  runtime/base/rng.cc runtime/device/cuda_functions.cc runtime/device/dtype.cc
  runtime/device/tensor_view.cc)
