# What libtandem_cuda.so is made of, from the repository's root. A list of its own because the tests
# compile the same sources for their emulator.
set(TANDEM_CUDA_KERNELS
  kernels/cuda/adamw.cu
  kernels/cuda/attention.cu
  kernels/cuda/attention_bf16.cu
  kernels/cuda/attention_bf16_backward.cu
  kernels/cuda/attention_input.cu
  kernels/cuda/elementwise.cu
  kernels/cuda/embedding.cu
  kernels/cuda/global_norm.cu
  kernels/cuda/kv_cache.cu
  kernels/cuda/log_prob.cu
  kernels/cuda/matmul.cu
  kernels/cuda/policy_loss.cu
  kernels/cuda/rms_norm.cu
  kernels/cuda/rope.cu
  kernels/cuda/sample.cu
  kernels/cuda/sum_pieces.cu
  kernels/cuda/swiglu.cu)
set(TANDEM_CUDA_HOST
  kernels/cuda/library_gemm.cc kernels/cuda/module.cc kernels/cuda/table.cc runtime/base/check.cc
  runtime/base/rng.cc runtime/device/cuda_functions.cc runtime/device/dtype.cc
  runtime/device/tensor_view.cc)
